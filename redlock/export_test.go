package redlock

// Options makes one option of several, for every kind of lock.
func Options(opts ...LockOption) LockOption {
	return everyLock{change: func(o *lockOptions) { applyAll(o, opts) }}
}
