package wire

import (
	"crypto/sha1"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// The hashes are constants so that nothing computes SHA-1 at run time (FIPS).
func TestScripts_hash_constants_match_their_sources(t *testing.T) {
	for _, s := range Scripts {
		sum := sha1.Sum([]byte(s.Source))
		if got := hex.EncodeToString(sum[:]); s.SHA != got {
			t.Errorf("%s: SHA %s, source has %s", s.Name, s.SHA, got)
		}
	}
}

func TestScripts_has_every_file(t *testing.T) {
	err := fs.WalkDir(files, "scripts", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		_, _, text := parts(strings.TrimSuffix(strings.TrimPrefix(path, "scripts/"), ".lua"))
		if !slices.ContainsFunc(Scripts, func(s *Script) bool { return strings.Contains(s.Source, text) }) {
			t.Errorf("%s is part of no script that is listed, so no master loads it", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A script that calls a function of a library that it does not name fails only when it comes there.
func TestScripts_use_no_function_that_they_lack(t *testing.T) {
	redis := strings.Fields("redis KEYS ARGV string math table tonumber tostring type ipairs pairs unpack pcall error select next")
	for _, s := range Scripts {
		chunk, err := parse.Parse(strings.NewReader(s.Source), s.Name)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		proto, err := lua.Compile(chunk, s.Name)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		for _, name := range globals(proto) {
			if !slices.Contains(redis, name) {
				t.Errorf("%s uses %s, which neither it nor its libraries define", s.Name, name)
			}
		}
	}
}

// globals returns the names that a compiled script reads or writes without having defined them.
func globals(p *lua.FunctionProto) (names []string) {
	for _, code := range p.Code {
		if op := int(code >> 26); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
			names = append(names, p.Constants[code&(1<<18-1)].String())
		}
	}
	for _, inner := range p.FunctionPrototypes {
		names = append(names, globals(inner)...)
	}
	return names
}
