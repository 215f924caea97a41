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
	ScriptAsk           = script("ask", "b4a2fa1e679b106df87ad81471a8d9fe826c1632")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptExtendCached  = script("extend_cached", "3721d7ed31aa1c1f6932f5036820602174323926")
	ScriptRelease       = script("release", "08e3b91fee9a111cfb6ee068df68d3180b2fc275").inColumns("releases", "70f9e8314c98a19305ef5b26c4e7b015adae38d0")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "5e12ab495299a68fcf2579c8617e72c1287cc8ad")
	ScriptFair          = script("fair", "bc05a581b0ecb90c98a217fc6d3f67c5038d2027").inTurn("fairs", "0cd3e4ddbb2f37c1d80c72363712bacfc86ad99a")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "c21303c29af4691ecdf7022f08e0175e9408f645").inTurn("writes", "26edc743522cb73d7ff4667f253069fd63809d8b")
	ScriptRead          = script("read", "d8009d8e1593297384c02fafd15080322003dbbb").inTurn("reads", "ed1b282e8d66805379c6935ce1e7dff85af1d501")
	ScriptWriteExtend   = script("write_extend", "3027f80d92a073c50ab3417373cb07238d79964d")
	ScriptReadExtend    = script("read_extend", "6e36f0bc1e6c247d9faf2124aa2a6cf146624800")
	ScriptWriteRepair   = script("write_repair", "93647592a0e226e9303e7841830871531169d066")
	ScriptReadRepair    = script("read_repair", "04caebe0266976497d0f45ddf5d086304a8b37a4")
	ScriptRWRelease     = script("rw_release", "b3c0005950c588be96e35f61fcb3f87db7d5bbc0").inTurn("rw_releases", "304b27730390a6ab8ef5c37e676a957ad0220ab4")
	ScriptMultiAsk      = script("multi_ask", "da81a5f1f78df823d7f1a983bfb9857a00d4a626")
	ScriptMultiExtend   = script("multi_extend", "9163bb7320e26b3e85f4867a301be50f27ead099")
	ScriptMultiRepair   = script("multi_repair", "cfbc8dee84b75b165f7a2d4e318bab4bb71ddf5f")
	ScriptMultiRaise    = script("multi_raise", "9068bce39cd29ba2a649b30b5224ffc9a1dd3ac7")
	ScriptMultiRelease  = script("multi_release", "4caf6587626a5988d64df77d33bab1c29e7db615")
	ScriptPermit        = script("permit", "594bef8cbcf19a7f4216448a4649cc14c3bbb826").inTurn("permit_takes", "09f6ca35fff81ccc42672f39e6ff396eb0870518")
	ScriptPermitMove    = script("permit_move", "b11e5a8e10c0e9262570952d86a7c52bbe7288e5")
	ScriptPermitExtend  = script("permit_extend", "6ffc16d1fbe92b0c92d2f3a03b599cc998fd4fae")
	ScriptPermitRelease = script("permit_release", "42c0c45752a0baf49a8def4a69cad83076f5de40").inTurn("permit_releases", "a3be115d0c46c768bc13ea768cb03fb20194cc43")
	ScriptPermitResize  = script("permit_resize", "571a1db288cc31a0b7c03d7acbcb70a83ec9b07c")
	ScriptPermitRaise   = script("permit_raise", "86379ee19963b9b78ed67b4acdfc4a9782fe5097")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "fbd313c4544456ef755a564b39c6bc04dd49450d")
	ScriptRequest       = script("request", "5fd2c3d8637f3f7c7490765971d45b9ceb5a1975")
	ScriptTransfer      = script("transfer", "31e93aa2d49e65d648793d7e2af71dd62eebe7cc")
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
