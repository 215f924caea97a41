package redlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shownBy names the example of a type that has none of its own name.
var shownBy = map[string]string{
	"Client": "Dial", "Event": "WithObserver", "EventKind": "WithObserver", "Leader": "Election", "LockOption": "Fair", "Option": "Dial",
	"NodeView": "Holder", "Share": "Holder", "Vote": "Error",
	"Locker": "Do", "MutexOption": "Fair", "MultiOption": "Fair", "RWMutexOption": "Fair", "SemaphoreOption": "Fenced",
}

// Whoever opens the documentation at a type finds how it is used.
func TestEvery_exported_type_has_an_example(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var types, examples []string
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if example, ok := strings.CutPrefix(d.Name.Name, "Example"); ok && strings.HasSuffix(name, "_test.go") {
					of, _, _ := strings.Cut(example, "_")
					examples = append(examples, of)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !strings.HasSuffix(name, "_test.go") {
						types = append(types, s.Name.Name)
					}
				}
			}
		}
	}
	if len(types) < 15 {
		t.Fatalf("only %d types: %v", len(types), types)
	}
	for _, name := range types {
		if !slices.Contains(examples, name) && !slices.Contains(examples, shownBy[name]) {
			t.Errorf("%s has no example", name)
		}
	}
}
