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
	ScriptAsk           = script("ask", "ae32d155cfbe630eb42c4a7a0664bc95102fa546")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "7dd03027c895209b9d3b4e945ae96709c78ac32e").inColumns("releases", "24a774e11012eb722d1cee713653d594ade04344")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "641f0d4ecbfe4d9c8f064dda34a3e5af644f68a5")
	ScriptFair          = script("fair", "9183635226fe8ea3e0e52265cd11f03c8e79b920").inTurn("fairs", "c1bd7c1457c68ec74221febd1690ce7eea4ed34f")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "1c6c7266e9140c566703967af981e7b06b376158").inTurn("writes", "acb3ad7abe46707c52b0372b6ee2b6be7c1dd7b7")
	ScriptRead          = script("read", "65a9ca4af0142f42d68081b9eb7ce2e9c1db22a5").inTurn("reads", "bf1750b68a06e2306f0294026f66e9db628b4155")
	ScriptWriteExtend   = script("write_extend", "05ba5a626cfcb29edab0b24d9ec2d97645ad7b74")
	ScriptReadExtend    = script("read_extend", "df6d76f066c4973311842d60132589b12954de16")
	ScriptWriteRepair   = script("write_repair", "95d7a33dcc4018af719abfbe27f63c2241713d47")
	ScriptReadRepair    = script("read_repair", "c16ccd5eb6a8ec80bdea1873c217869ac36c6505")
	ScriptRWRelease     = script("rw_release", "a22073f2a94fbec6825834128fdeefa3a6f1c9b5").inTurn("rw_releases", "9064e0520d4f668dfcf129c741a0d69ee4c0c321")
	ScriptMultiAsk      = script("multi_ask", "bfefce626210d59ac2944b75bb38d063465c51b1")
	ScriptMultiExtend   = script("multi_extend", "f4d7b4ae85a95d3c54a6fd78b7d5ad5e1bacabfc")
	ScriptMultiRepair   = script("multi_repair", "45e715ca5e23e10f0750d5777faae1924e9fbc7c")
	ScriptMultiRaise    = script("multi_raise", "b949cdceda9d8189aec028eb2b4883064eb9b75b")
	ScriptMultiRelease  = script("multi_release", "b67efe3675bcb95c5755e277c38ba8cf66ec0e32")
	ScriptPermit        = script("permit", "1855e1b60704f9fc861fcea8ec8f33bcbf0832ea").inTurn("permit_takes", "b7eb5b758210c30c9f6eb565117cc979537700f3")
	ScriptPermitMove    = script("permit_move", "253065bf4c5698beb8859ebde657d33f0c832bf2")
	ScriptPermitExtend  = script("permit_extend", "687db1fbaf37c3485b7a336282e146c77f55a0ed")
	ScriptPermitRelease = script("permit_release", "57c5888af2749dcf84cfb28e48eb15a2574230a1").inTurn("permit_releases", "e1ec6cb74638d372cb39b9aee03104521c7156ed")
	ScriptPermitResize  = script("permit_resize", "962ba11895ff4e7502583684993b2ecf29fb9c2d")
	ScriptPermitRaise   = script("permit_raise", "6366c772d3234709fe9fa02500d046be025433c0")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "4e7383002f9b5e9f356c91f4ca54ad27286138a6")
	ScriptRequest       = script("request", "07e717b38438517afa439a25f17730aea53a85bb")
	ScriptTransfer      = script("transfer", "882a94d381495d38c0f089b025bdf20454073ed0")
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
