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
	ScriptAsk           = script("ask", "ed534a77bf3b5e846f497190b347f632e26316ad")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptExtendCached  = script("extend_cached", "b8397b8c3c75284d7bc009bc64564ec4d29a7f14")
	ScriptRelease       = script("release", "ff6b17ee5267e15545620f838e58043d66344002").inColumns("releases", "1703566869f12c826addeb9cd824de33d63bae53")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "08d238aadba8e4bb1281f69907e45a50f2352a6c")
	ScriptFair          = script("fair", "63ad1007abd97869fff68096189faa65a278d1a0").inTurn("fairs", "20f9d127e82faadd018611cc26d38c41b730f632")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "1a06cbe3d13596acf41bac5a56f918d9dd43057e").inTurn("writes", "eed3496505743e33cc05be7276ae307961a178ae")
	ScriptRead          = script("read", "fe959d988a99f731b812e313396f6c4cf271f788").inTurn("reads", "5672ca1365ee3a86f96385977bda5143e8517e38")
	ScriptWriteExtend   = script("write_extend", "e22fcc44fc3ffe0d71cea938ad9f534af7a28b9d")
	ScriptReadExtend    = script("read_extend", "6b5d05a304d0e2bfa516917c603090cacf22ba21")
	ScriptWriteRepair   = script("write_repair", "c25137c49a9474f6c13909e44649f37db4e4d037")
	ScriptReadRepair    = script("read_repair", "709200e3edcee9cfce94ac774c539d01ba0d99a9")
	ScriptRWRelease     = script("rw_release", "b088eb3fc320ea1e98d82bab6fc07d54ad448e53").inTurn("rw_releases", "fc4d54ead4077a8656ebccd35ef4f5435fe32edc")
	ScriptMultiAsk      = script("multi_ask", "69bb82ff3c71faec865dc039073fd7a4c85e9971")
	ScriptMultiExtend   = script("multi_extend", "89f58204d18fcb8e08a5c850c0503984c8f22045")
	ScriptMultiRepair   = script("multi_repair", "df17fdf5e522139ac33bd89c73cd28d4a81468ff")
	ScriptMultiRaise    = script("multi_raise", "b82bdd61d24e9dec4ebf584a7fe80314362a9b19")
	ScriptMultiRelease  = script("multi_release", "46735ec37b42eb3b88e6411edae381ae800f1e66")
	ScriptPermit        = script("permit", "697c338be26791691e2285ee142d3be89443be6a").inTurn("permit_takes", "a0fed2401fcc1ce52f5402e8381a86971951fcb7")
	ScriptPermitMove    = script("permit_move", "660500e47224f8324672917e10e339d77f2a031c")
	ScriptPermitExtend  = script("permit_extend", "03a2a8812fcd06914996c6c4f32e7e258ba3ea79")
	ScriptPermitRelease = script("permit_release", "9218c1697295e973754559d8523d737e2370501b").inTurn("permit_releases", "7a1796e4f123923d2ee123353cf576fff17ae2c5")
	ScriptPermitResize  = script("permit_resize", "d3333defe0efce1eff9d7f9eac1713ade09522f4")
	ScriptPermitRaise   = script("permit_raise", "8345afff5a6cfed1f09e7f6fdeec18b534504d2a")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "7398b1f54397cdc321433a5192161c1d2825ffcf")
	ScriptRequest       = script("request", "5fd2c3d8637f3f7c7490765971d45b9ceb5a1975")
	ScriptTransfer      = script("transfer", "6036c52e52277de581c48fed17e21186fc1e7b76")
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
