package redlock_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The simulator runs the production coordinator deterministically in one
// goroutine. That works only as long as the coordinator takes time, waiting and
// chance from its seams: this test keeps everything else out.
func TestSeams_are_the_only_way_out(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"../drift", "../quorum", "../node/wire", "../internal/values", "internal/waiting", "."} {
		for _, breach := range breaches(t, dir) {
			t.Error(breach)
		}
	}
}

func TestSeams_test_sees_every_breach(t *testing.T) {
	dir := t.TempDir()
	source := `package p
import ("math/rand"; "time")
func f(c chan int, m map[int]int) {
	go f(c, m)
	select { case <-c: default: }
	for range m {}
	_ = time.Now()
	time.AfterFunc(0, nil)
	_ = rand.Int()
}`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"go statement", "select", "range over a map", "time.Now", "time.AfterFunc", "rand.Int"}
	got := breaches(t, dir)
	for _, w := range want {
		if !slices.ContainsFunc(got, func(b string) bool { return strings.HasSuffix(b, w) }) {
			t.Errorf("%q is not among %q", w, got)
		}
	}
}

// pastTheSeams are the functions that reach the system's clock, timers and
// randomness. Constructors of seeded generators are fine.
var pastTheSeams = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"math/rand":    {"*"},
	"math/rand/v2": {"Int", "IntN", "Int64", "Int64N", "Uint32", "Uint64", "Uint64N", "N", "Float64", "Perm", "Shuffle"},
}

// compiled opens what the compiler knows of a package. Reading all that is
// imported from source instead takes a minute under the race detector.
func compiled(path string) (io.ReadCloser, error) {
	files, err := compiledFiles()
	if err != nil {
		return nil, err
	}
	return os.Open(files[path])
}

var compiledFiles = sync.OnceValues(func() (map[string]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "../drift", "../quorum", "./...", "math/rand")
	out, err := list.Output()
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files, err
})

func breaches(t *testing.T, dir string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", compiled)}
	if _, err := config.Check(dir, fset, files, info); err != nil {
		t.Fatal(err)
	}
	report := func(n ast.Node, what string) {
		found = append(found, fset.Position(n.Pos()).String()+": "+what)
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n, "go statement")
			case *ast.SelectStmt:
				report(n, "select")
			case *ast.RangeStmt:
				if _, ok := info.TypeOf(n.X).Underlying().(*types.Map); ok {
					report(n, "range over a map")
				}
			case *ast.SelectorExpr:
				fn, ok := info.Uses[n.Sel].(*types.Func)
				if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
					break
				}
				names := pastTheSeams[fn.Pkg().Path()]
				if slices.Contains(names, fn.Name()) || slices.Contains(names, "*") {
					report(n, fn.Pkg().Name()+"."+fn.Name())
				}
			}
			return true
		})
	}
	return found
}
