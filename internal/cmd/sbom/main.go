// Command sbom prints what a Go program was made of, as CycloneDX JSON. It says what
// go version -m says, in a form that other tools read.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// bom is a CycloneDX document. It has neither a time nor a serial number, so that
// the same program always has the same.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(describe(filepath.Base(os.Args[1]), info))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// describe lists the modules of a program, and the Go that it was built with.
func describe(name string, info *debug.BuildInfo) *bom {
	program := component{Type: "application", Name: name, Version: info.Main.Version, PURL: purl(&info.Main)}
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
	}
	b := &bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{program}}
	b.Components = append(b.Components, component{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + info.GoVersion})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m)}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	return b
}

func purl(m *debug.Module) string { return "pkg:golang/" + m.Path + "@" + m.Version }
