package main

import (
	"runtime/debug"
	"slices"
	"testing"
)

func TestA_b_o_m_names_every_module_of_the_program(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.99",
		Main:      debug.Module{Path: "example.org/program", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.org/one", Version: "v0.1.0", Sum: "h1:one"},
			{Path: "example.org/two", Version: "v0.2.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v0.2.1", Sum: "h1:fork"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
	}

	got := describe("program_linux", info)

	want := []component{
		{Type: "library", Name: "std", Version: "go1.99", PURL: "pkg:golang/std@go1.99"},
		{Type: "library", Name: "example.org/one", Version: "v0.1.0", PURL: "pkg:golang/example.org/one@v0.1.0", Properties: []property{{"go:sum", "h1:one"}}},
		{Type: "library", Name: "example.org/fork", Version: "v0.2.1", PURL: "pkg:golang/example.org/fork@v0.2.1", Properties: []property{{"go:sum", "h1:fork"}}},
	}
	same := func(a, b component) bool {
		return a.Type == b.Type && a.Name == b.Name && a.Version == b.Version && a.PURL == b.PURL && slices.Equal(a.Properties, b.Properties)
	}
	if !slices.EqualFunc(got.Components, want, same) {
		t.Errorf("components %+v, want %+v", got.Components, want)
	}
	program := component{Type: "application", Name: "program_linux", Version: "v1.2.3", PURL: "pkg:golang/example.org/program@v1.2.3", Properties: []property{{"go:vcs.revision", "abc"}}}
	if !same(got.Metadata.Component, program) {
		t.Errorf("the program is %+v, want %+v", got.Metadata.Component, program)
	}
}
