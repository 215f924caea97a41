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
	ScriptAsk           = script("ask", "3efc303852b192a60cd09692b2e1b7ba52c9cc71")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "48bb93a1133f80e510c419beb79e953cf890a026").inColumns("releases", "3a2a22e4fb3bbf166368fcde18531e86c26c78ff")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "1063b9ec4139326ff0f30e27ee2ae2f7eaaa97f9")
	ScriptFair          = script("fair", "c04bffe49cc77f973157ffbacb87fc229b79502b").inTurn("fairs", "b29d3d718cbd59f2c4fbe95cc1f31653d0b1743a")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "4a6e6d3f9412b158cd3c4ec9926918a3b6230aaa").inTurn("writes", "e56a9523336416a8d004c58d6b445398535b33e0")
	ScriptRead          = script("read", "d5e76f6f16c854a67d7e8672bcb42ee49042b36b").inTurn("reads", "98f1423146d86592486bf5e152567f3dad700547")
	ScriptWriteExtend   = script("write_extend", "a8c9643d3774eb072ebeab1175b3c0716b8e376a")
	ScriptReadExtend    = script("read_extend", "973eea4c961659904dbd8306473d367ce34754cd")
	ScriptWriteRepair   = script("write_repair", "39b7cf89295a4914dbc1bac4fd7354f73607cec1")
	ScriptReadRepair    = script("read_repair", "549cc3c2529e69f9656d688549d3c638bda3ec83")
	ScriptRWRelease     = script("rw_release", "414a6b5cf06ff642337c4f7ce7697e4e2fd31496").inTurn("rw_releases", "f1cd05c2b639416db20c9a0f5b85c735367871cd")
	ScriptMultiAsk      = script("multi_ask", "624dc9b0ba37cf515fcd9b1530368d7078b26efc")
	ScriptMultiExtend   = script("multi_extend", "d175a9c7ff7a41c86f94424debd91bd71f17b701")
	ScriptMultiRepair   = script("multi_repair", "503c350c43717d9081348e61d28e02469f40a6a5")
	ScriptMultiRaise    = script("multi_raise", "3c488cd9450d6601bf825e9428f23066083972c8")
	ScriptMultiRelease  = script("multi_release", "f198e7e32dae387c4ccf846bf70a406ef7fbc42a")
	ScriptPermit        = script("permit", "5f13f713d36dffa62273d1f13eb2051b0165bc28").inTurn("permit_takes", "b4b0d7b3fc98afdba7b82e9080e545193d316541")
	ScriptPermitMove    = script("permit_move", "3c55dcb2ae90d7eae5c46c4f04b0ac395ce94907")
	ScriptPermitExtend  = script("permit_extend", "ee1d41cf4b861d15e2c30619bd7adfec36406667")
	ScriptPermitRelease = script("permit_release", "cc0e9974a70db1a8d6eeb1c7b8cc57f9f389bfa6").inTurn("permit_releases", "d14e9564c54787d9f6e43256ac29dfa302a53927")
	ScriptPermitResize  = script("permit_resize", "51d31796a074a61f838476c74f16f95a1a7a4f1d")
	ScriptPermitRaise   = script("permit_raise", "76e579f76f6018dc9cf8389da221af94c22558b2")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptRequest       = script("request", "3da2c0f65fa44ccf9a152aa8ecf49b0c5432b53a")
	ScriptTransfer      = script("transfer", "ce3628cf128ed79ba7794856285dfbd321777702")
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
