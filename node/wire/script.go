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
	ScriptAsk           = script("ask", "129f28a2db4d339dc441b3976a8b5edf760c3f7e")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "a0593d27c6f13027dbccca03fdd910811e162f7d").inColumns("releases", "3310a1964e771298e828df1b3d4393e4b5cf0ad4")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "71348fd855ca5f5a46e45ba19c72fb3384af7801")
	ScriptFair          = script("fair", "cbd6e2791396f446c2e2ef278fc240a41e41ca25").inTurn("fairs", "653750c9d7dbf069e2b26eec42f3d91dd0bd5515")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "564ba9b389174218a2f36db882efff21402c700d").inTurn("writes", "03bca796115a1b2c3b865ee8ea7d43522fb51d22")
	ScriptRead          = script("read", "f76a35607ebcf8de3c6cb6ca094c10f1bdac493f").inTurn("reads", "de9811f0f1c26f1ea699df9dfd02a8ce5e4f1317")
	ScriptWriteExtend   = script("write_extend", "52b15bc3497c2e2e54197f39b44ce4d1c716d223")
	ScriptReadExtend    = script("read_extend", "982f2645b8d22b824bb74d94320ac58394b59cf9")
	ScriptWriteRepair   = script("write_repair", "5434b138aaf1a34437623a8e07d0425fa003ba6f")
	ScriptReadRepair    = script("read_repair", "f5681aa0a7dbc56021609e757b60f28e1646258c")
	ScriptRWRelease     = script("rw_release", "129fbde1a31f3006d0c134d9374f3b039004f831").inTurn("rw_releases", "c6beb1fd0a66f7b2f5ade25134e3454f115f17d6")
	ScriptMultiAsk      = script("multi_ask", "b5c6c4b36b4c3b403a531951575877a04c70e313")
	ScriptMultiExtend   = script("multi_extend", "9abe1c0cea616e790b596556de0359250666a098")
	ScriptMultiRepair   = script("multi_repair", "9d49a818b09c464fd8e02358df0fd41f810d3fc4")
	ScriptMultiRaise    = script("multi_raise", "5cf3950539cc0877e99e26a03d676a657cdbb4e6")
	ScriptMultiRelease  = script("multi_release", "cf38a6ad0e15df8c94e4cb7c0e99cb7c4fb69abd")
	ScriptPermit        = script("permit", "acaa7c2380bb6842a616dcbc3c5b9fd20e11c914").inTurn("permit_takes", "471c503a24f44901206c09e45156e6bcf08ef306")
	ScriptPermitMove    = script("permit_move", "27d8b6173b56a58b335b09fff2482d835e6695ea")
	ScriptPermitExtend  = script("permit_extend", "17049f3d67447da4dbdb58c806d67022d66cbac3")
	ScriptPermitRelease = script("permit_release", "8b925a4a6734023162910cb4054dc57dc0eea99c").inTurn("permit_releases", "5c888c8b2133fd466d84fd6a7132d630ecab7f9a")
	ScriptPermitResize  = script("permit_resize", "7e1fa3cb759a14bc1e324a0a0e156ef72f108818")
	ScriptPermitRaise   = script("permit_raise", "6f09c00f23e0d644c2b1b4ff78ac114d037303f6")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "ed7bce8819a64b2c5801ced58e3e97395b04c9ea")
	ScriptRequest       = script("request", "5fd2c3d8637f3f7c7490765971d45b9ceb5a1975")
	ScriptTransfer      = script("transfer", "2b247c37ae1ad662aa1328ec06d33745bff450f6")
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
