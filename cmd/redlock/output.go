package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// output is a file that the result is written to. A nil *output is none.
type output struct{ file *os.File }

// create makes the file before the run that it is for: an hour later is too late to
// find out that it cannot be made. Without a name there is none.
func create(name string) (*output, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, usage("%w", err)
	}
	return &output{file}, nil
}

func (o *output) write(to func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	return errors.Join(to(o.file), o.file.Close())
}

// abandon removes the file: there is nothing to write.
func (o *output) abandon() error {
	if o == nil {
		return nil
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}

// interrupted is the outcome of a run that ^C cut short.
func interrupted(what string) error {
	return &exit{exitSignal + int(syscall.SIGINT), fmt.Errorf("interrupted: %s", what)}
}
