package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Journals of another run would be judged with its own.
func TestA_folder_of_another_run_is_refused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "seed-9"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := newCommand()
	cmd.SetArgs([]string{"--duration", "5s", "--seed", "9", "--dir", dir})
	if err := cmd.Execute(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want that the folder is there", err)
	}
}
