package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of the module, in which code may be broken.
type tree struct{ dir string }

// copyTree copies the files that git knows of the module at root, and those it does not
// know yet, to a new directory.
func copyTree(root string) (*tree, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	names, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	t := &tree{dir}
	for _, name := range strings.Split(string(bytes.TrimRight(names, "\x00")), "\x00") {
		if err := t.take(root, name); err != nil {
			t.remove()
			return nil, err
		}
	}
	return t, nil
}

func (t *tree) take(root, name string) error {
	from := filepath.Join(root, name)
	info, err := os.Lstat(from)
	switch {
	case os.IsNotExist(err):
		return nil // deleted, and not committed yet
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return nil
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.path(name), b, info.Mode()&fs.ModePerm)
}

func (t *tree) path(name string) string { return filepath.Join(t.dir, name) }

func (t *tree) remove() { os.RemoveAll(t.dir) }

// with runs f while the break is in the tree.
func (t *tree) with(b *Break, f func() error) error {
	sound, err := os.ReadFile(t.path(b.File))
	if err != nil {
		return b.wrong(err)
	}
	broken, err := b.apply(string(sound))
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.path(b.File), []byte(broken), 0o644); err != nil {
		return err
	}
	err = f()
	if undo := os.WriteFile(t.path(b.File), sound, 0o644); err == nil {
		err = undo
	}
	return err
}

// build compiles the command; an error means that the break does not compile.
func (t *tree) build(b *Break) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", t.command(), "./cmd/redlab")
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return b.wrong(fmt.Errorf("does not compile:\n%s", out))
	}
	return nil
}

func (t *tree) command() string { return t.path("bin/redlab") }
