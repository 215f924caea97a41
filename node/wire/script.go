package wire

import (
	"embed"
	"strings"
)

// Script is a Lua script that the masters know by the SHA-1 of its source. The
// hash is a constant that a test compares with the source, so that no SHA-1 is
// computed at run time (FIPS).
type Script struct {
	Name   string
	Source string
	SHA    string

	many    *Script // that makes several calls of this one, or nil
	one     *Script // of which this one makes several calls, or nil
	columns bool    // see InColumns
}

// Scripts lists every script.
var Scripts []*Script

// Common are the scripts that every client needs, which are loaded when a master is
// connected. Each of the others is loaded before its first use on a connection.
var Common = []*Script{ScriptAsk, ScriptExtend, ScriptRelease, ScriptReleases, ScriptInspect, ScriptMarker}

// The scripts. What each does, takes and answers stands in its file. Behind some stands how
// the transport sends several calls in one.
var (
	ScriptAsk           = script("ask", "b17570e6cdc5ea5f95f87b876880f4e021795905")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "4582862e5cb6aa4c3e36bc6389dbab68fbc6c7ea").inColumns("releases", "bb0cb55061d2e9a26bf888ce5c8f19eae4dd9976")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "aeba05e72a1c289fda23077943d784485f37d138")
	ScriptFair          = script("fair", "76705dcf435789d98bd62e5b02589930ba65458b").inTurn("fairs", "a7bfc8b140ecf033dfaa0e2f06dec623635ebb6e")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "44a11b03e6e837e400d9a3766650e92430906cf8").inTurn("writes", "d0893a45948839b5e545b9d7373e639bfca0cf66")
	ScriptRead          = script("read", "97b3cdfd700578909b98667e6fe34eeb2670cd1c").inTurn("reads", "e2feff47e6e8c3ae0e35daee0bce9e13ee5deb0f")
	ScriptWriteExtend   = script("write_extend", "ec2433a7d20e360e6665ec24d804183309cbb677")
	ScriptReadExtend    = script("read_extend", "c8e272eb0431c90c6efdac9e695a5c3b21955bac")
	ScriptWriteRepair   = script("write_repair", "25229052417727b3856cdcbd2b85a430926ac429")
	ScriptReadRepair    = script("read_repair", "d09a0b7f590613103438315f8441528b86d167f6")
	ScriptRWRelease     = script("rw_release", "47002c88ff9b86cae1c9b7ecba0bdadc750d57a6").inTurn("rw_releases", "d86c207767e964459d31f49a5d0ad64b897fbde0")
	ScriptMultiAsk      = script("multi_ask", "610a96cb291513804b7e272925eac1b92b275ca7")
	ScriptMultiExtend   = script("multi_extend", "66542cf7fcebce34a7aa655f6b1cde36bfa53b2c")
	ScriptMultiRepair   = script("multi_repair", "5b86ac4b1339eb04e9517bf849b93f3f30e3799c")
	ScriptMultiRaise    = script("multi_raise", "c2d0895d4fd79a9823f827a9fea3566f237caee5")
	ScriptMultiRelease  = script("multi_release", "d64c2144548de1bdb6799d504363895f54d85094")
	ScriptPermit        = script("permit", "544957197aeb99fbd2b80684284cf6f662de9ceb").inTurn("permit_takes", "8588a89503ed4f6207249c6c04c24a099325597e")
	ScriptPermitMove    = script("permit_move", "a909b6f0d328ba067c34d5a80d1c3a506eaacea1")
	ScriptPermitExtend  = script("permit_extend", "57a9b612963d610420e5936e16c12b24e33f3b06")
	ScriptPermitRelease = script("permit_release", "48ec2f595dfeaa89ee24e91b9dc7cedf5810153f").inTurn("permit_releases", "515cb39d917aac179272ee54bf40e71cdf3fb7a5")
	ScriptPermitResize  = script("permit_resize", "b4fac343f9119f7609c557eb7177830e12ef2093")
	ScriptPermitRaise   = script("permit_raise", "d1dd0a79566ca0cf2ec0c78b3e30f438c8aa7889")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptRequest       = script("request", "3da2c0f65fa44ccf9a152aa8ecf49b0c5432b53a")
	ScriptTransfer      = script("transfer", "5902492217e71eb03d055362d33eb7396bc55ba3")
	ScriptMarker        = script("marker", "c1f2be4069216d685dea60bd4e21a5fda95e4bb9")
)

// ScriptReleases is several calls of ScriptRelease in one.
var ScriptReleases = ScriptRelease.Many()

//go:embed scripts
var files embed.FS

// file returns a file of scripts.
func file(name string) string {
	text, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // it is part of the program
	}
	return string(text)
}

// needs begins the line of a script that names its libraries.
const needs = "-- needs: "

// parts returns the parts of a script: the short way for simple cases, the libraries that it
// needs for the rest, and the rest.
func parts(name string) (short, libraries, rest string) {
	text := file(name)
	short, rest, found := strings.Cut(text, needs)
	if !found {
		return "", "", text
	}
	names, rest, _ := strings.Cut(rest, "\n")
	for library := range strings.FieldsSeq(names) {
		libraries += file("lib/" + library)
	}
	return short, libraries, rest
}

// script returns the script of the file of that name.
func script(name, sha string) *Script {
	short, libraries, rest := parts(name)
	return list(&Script{Name: name, Source: short + libraries + rest, SHA: sha})
}

// inTurn has s made several times in one script: one call after the other.
func (s *Script) inTurn(name, sha string) *Script {
	short, libraries, rest := parts(s.Name)
	return s.times(list(&Script{
		Name: name, SHA: sha,
		Source: libraries + file("lib/failure") + file("lib/each") + short + rest + file("lib/fold"),
	}))
}

// inColumns has s made several times by a script of its own; see InColumns.
func (s *Script) inColumns(name, sha string) *Script {
	many := script(name, sha)
	many.columns = true
	return s.times(many)
}

func (s *Script) times(many *Script) *Script {
	s.many, many.one = many, s
	return s
}

func list(s *Script) *Script {
	Scripts = append(Scripts, s)
	return s
}
