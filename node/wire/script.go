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
	ScriptAsk           = script("ask", "7930dc53336b49d1d52b26db5432d9e8e5592260")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptExtendCached  = script("extend_cached", "f29c829edfd257ddaa54cfe19a5bb83083ecc4d2")
	ScriptRelease       = script("release", "41765780d0a9799bf4bd35a302ea1040f766e68b").inColumns("releases", "067e979851d08fed18d1ae5d1cf2e56f53412aaa")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "0cdea1a453629472a9134f74c28cf32c8f799d62")
	ScriptFair          = script("fair", "fda1965ffcd652d1ba24541c7ab3a81009bf96cc").inTurn("fairs", "96794737d52c7a8e770970c3e7834842768c281d")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "e1134bc4e1fe927d1482ca986da974ddeb0091da").inTurn("writes", "910820919e3b1e223003b2e71cb34943559a7fce")
	ScriptRead          = script("read", "610c6efff520ac089c53e266eb8365e4b7e4eef6").inTurn("reads", "38fa4daa532697011754cf4a9cfe23ce8cb9086e")
	ScriptWriteExtend   = script("write_extend", "bd65e2639d1f3891d12af648487f2534e986e2e7")
	ScriptReadExtend    = script("read_extend", "b27586ba065e62d1807c6a52df844c8523583973")
	ScriptWriteRepair   = script("write_repair", "1422e69bf05aa3617e25488f60bba77588d13e38")
	ScriptReadRepair    = script("read_repair", "1f432109f6a67f60bbd0adb5b8fb7e4111a53b6a")
	ScriptRWRelease     = script("rw_release", "9153f2b8fc011596911f311bdabf63bdf976fed7").inTurn("rw_releases", "cc9f06a5084fbe1f70675a646b01bef5279f66b6")
	ScriptMultiAsk      = script("multi_ask", "c3fc41ce94f0412f8735dcac5a8dc42ea9e1f762")
	ScriptMultiExtend   = script("multi_extend", "6c78f7a200bc7558349575605d8b45979b03b5a0")
	ScriptMultiRepair   = script("multi_repair", "748591d10f7af78831e2c25c605a16b6ceb01721")
	ScriptMultiRaise    = script("multi_raise", "1c22a30451e6a2cb47526f71cecac3de821e6cbf")
	ScriptMultiRelease  = script("multi_release", "46dbda8e450b6ff436ed6e65ae83b6d6b695f69a")
	ScriptPermit        = script("permit", "dc9b2260a1a95cfbd8632b1b98a7f7689cab7b11").inTurn("permit_takes", "d93af2005b364e393b4d8cba5415f002ccb2a52f")
	ScriptPermitMove    = script("permit_move", "dc5c869d5121048d18f8c5e59c41c4cfe2fdbb8f")
	ScriptPermitExtend  = script("permit_extend", "63c41881913f23c3c7afdd027e42f0392c2b7efc")
	ScriptPermitRelease = script("permit_release", "446a39819c88ac80a0a6141a2136c0dd2f268889").inTurn("permit_releases", "bb0ed158f85472bdbdf2b6a5a0dcd46f6c5a8a37")
	ScriptPermitResize  = script("permit_resize", "5a06919e39e7dc35efc45e2b107241e634ee1c9d")
	ScriptPermitRaise   = script("permit_raise", "0a071e156c1ef210333f2c03857394bc6db3f771")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "e29572e44120be85e1e06883988ab72702ab0801")
	ScriptRequest       = script("request", "5fd2c3d8637f3f7c7490765971d45b9ceb5a1975")
	ScriptTransfer      = script("transfer", "4837283aefb09093a09264b5acc608a96fe998c2")
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
