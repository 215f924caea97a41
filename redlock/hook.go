package redlock

import "github.com/quorumlock/quorumlock/internal/seam"

func init() {
	seam.Option = func(s seam.Seams) any {
		return Option(func(o *options) { o.seams = s })
	}
	seam.SettingsOf = func(client any) seam.Settings {
		o := client.(*Client).opt
		return seam.Settings{Clock: o.clock, RestartGuard: o.restartGuard, Prefix: o.prefix}
	}
}
