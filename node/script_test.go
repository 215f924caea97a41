package node

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
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

func TestScripts_lists_every_file(t *testing.T) {
	files, err := os.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"queue": true, "rw": true, "multi": true, "permits": true} // parts of others
	for _, s := range Scripts {
		listed[s.Name] = true
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".lua"); !listed[name] {
			t.Errorf("script %s is not listed, so no master loads it", name)
		}
	}
}
