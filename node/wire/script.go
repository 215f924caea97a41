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
	ScriptAsk           = script("ask", "4cd2080a18bc749f91367e5f9e042541ff7f39e8")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "7d09ede70bcbf3a8a8ef8ddf5b5625a7f6a5b0b0").inColumns("releases", "406771eed68587762474e3cbda7c129ea2a2a8fd")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "41d209085f69e4cbfb4cede093b39b82348838a6")
	ScriptFair          = script("fair", "c552e8cca487233d33405c44e6c7178e58dc5f1d").inTurn("fairs", "f2851a34fc6be846002b3a6e98146088866230be")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "c9b6970f796e73e367127b92bb62c1db4c52bec1").inTurn("writes", "49f2da7630a8158016abe4b6e8f62f26740d844f")
	ScriptRead          = script("read", "787a7250d7cbf9ff96a5164042832994c0aca8ad").inTurn("reads", "96c29ca08d1b7b8abca8b133031f24303ee0e155")
	ScriptWriteExtend   = script("write_extend", "b59f3f0a83421ffc9af957b49dc676856be55ccd")
	ScriptReadExtend    = script("read_extend", "b9a90e35c81c2c42b26807e41c7dfa3a92adc2f6")
	ScriptWriteRepair   = script("write_repair", "88e2c5c23d496fcefd48b5c9821ce8c32618f078")
	ScriptReadRepair    = script("read_repair", "9412389e6c065e195dec1e5fe119eb14fe395f57")
	ScriptRWRelease     = script("rw_release", "3019cd6c2e8f4c8daff5b1b21f64d38dbe5ebb18").inTurn("rw_releases", "95995fe8ddf72c6f6a41320c27624d3e4852507f")
	ScriptMultiAsk      = script("multi_ask", "136d2d574f6e42d26997fbd91ed9aa7ddb458bd4")
	ScriptMultiExtend   = script("multi_extend", "cca6eae57ca086c44e5fddf0623f28b83556f452")
	ScriptMultiRepair   = script("multi_repair", "e4736d2c2285c560a4ee2edf755a9e9997e8dfd6")
	ScriptMultiRaise    = script("multi_raise", "d8b95002e3a491793891041c4240cc3901bc20f8")
	ScriptMultiRelease  = script("multi_release", "2dd77aef99b8b8341c63e560aaaa8f284e7b58bd")
	ScriptPermit        = script("permit", "3ee8e1b73ade03c1a4834e1ecde1865621abe9fb").inTurn("permit_takes", "11dcbd183e177a0eb317021bddd825541a3e9c3e")
	ScriptPermitMove    = script("permit_move", "67a497fef100263c363cb050b4b68984c0e5bbca")
	ScriptPermitExtend  = script("permit_extend", "3f4da9eadb1cb9632cc6de5bd7457c9248048070")
	ScriptPermitRelease = script("permit_release", "491e4ff0199b352552b32cdadb30eae7c7a1febd").inTurn("permit_releases", "e39f0198be46b26245c62a8aa8ec280ffea19f4f")
	ScriptPermitResize  = script("permit_resize", "d3b68fb1fa4ba8bd2bf206445a1ec3a7541bb631")
	ScriptPermitRaise   = script("permit_raise", "1b6e6f6cc8c8b81a11121da5ba5dd9d6334759f2")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "25077e070b5aa22af91357ad18d174758588f64e")
	ScriptRequest       = script("request", "3da2c0f65fa44ccf9a152aa8ecf49b0c5432b53a")
	ScriptTransfer      = script("transfer", "a8a052a9c031586387e12b660a40e9cf64713446")
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
