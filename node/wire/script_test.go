package wire

import (
	"crypto/sha1"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"testing"
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
