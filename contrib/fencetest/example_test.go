package fencetest_test

import (
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/contrib/fencetest"
	"github.com/quorumlock/quorumlock/redlock"
)

func Example() {
	// func TestMy_file_refuses_old_holders(t *testing.T) {
	var t *testing.T
	fencetest.Run(t, func() fencetest.Resource {
		var file file
		return fencetest.Resource{Write: file.write, Read: file.read}
	})
	// }
}

type file struct {
	mu      sync.Mutex
	fence   redlock.Fence
	content string
}

func (f *file) write(token uint64, content string, between func()) error {
	f.mu.Lock() // or the next holder comes in between
	defer f.mu.Unlock()
	if err := f.fence.Check("file", token); err != nil {
		return err
	}
	between()
	f.content = content
	return nil
}

func (f *file) read() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.content, nil
}
