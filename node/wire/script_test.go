package wire

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
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
	files, err := os.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile("scripts/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(Scripts, func(s *Script) bool { return strings.Contains(s.Source, string(text)) }) {
			t.Errorf("%s is part of no script that is listed, so no master loads it", f.Name())
		}
	}
}
