package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run over the list takes hours. A break that leaves a variable without use would end
// it in the middle.
func TestEvery_break_compiles(t *testing.T) {
	all, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exported(t))
	packages := map[string]map[string]*ast.File{}
	for _, b := range all {
		dir, name := filepath.Split(b.File)
		if packages[dir] == nil {
			packages[dir] = sources(t, fset, filepath.Join("../..", dir))
		}
		if err := compiles(fset, imports, packages[dir], name, broken(t, b)); err != nil {
			t.Errorf("breaks.txt:%d: %s: %v", b.line, b.About, err)
		}
	}
}

// exported finds what the packages that breaks are in depend on, as it was compiled.
func exported(t *testing.T) importer.Lookup {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		at[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(at[path]) }
}

func broken(t *testing.T, b *Break) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("../..", b.File))
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.apply(string(source))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compiles checks the types of a package of which one file has other text.
func compiles(fset *token.FileSet, imports types.Importer, files map[string]*ast.File, name, text string) error {
	other, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if files[name] == nil {
		return fmt.Errorf("%s: no such file", name)
	}
	all := []*ast.File{other}
	for n, f := range files {
		if n != name {
			all = append(all, f)
		}
	}
	_, err = (&types.Config{Importer: imports}).Check(other.Name.Name, fset, all, nil)
	return err
}

// sources parses the files of a package that are no tests.
func sources(t *testing.T, fset *token.FileSet, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = f
	}
	return files
}
