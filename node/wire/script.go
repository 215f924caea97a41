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
	ScriptAsk           = script("ask", "da708b805ec509adb9ba8e7303eb14daa2c1b5a2")
	ScriptExtend        = script("extend", "5869899d7d60519e6799c3ed90f2b072bddf9962")
	ScriptRelease       = script("release", "7d65d2ed8ca5452b3fc543a90d7dc5a50fecbf1a").inColumns("releases", "8f823a8ffdbb7d8ed2b4009de84ec3bd002b4d46")
	ScriptInspect       = script("inspect", "ac396e376253f032d87d7a9321d16e3a98d1bd91")
	ScriptFair          = script("fair", "ee1a140b9081aa0e5243c19d500fa5107dc9f644").inTurn("fairs", "77afe5d7cff41f97b7bc7af9d5689b273ab76d26")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "bc1b7c14e342e3d920419d73737c911421bd365d")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "5c83519d788f71efc66bcdd6353bd59bff4314ef").inTurn("writes", "2a8faaca301ce969931dfd9f987849021bc396a5")
	ScriptRead          = script("read", "fc5d409bad35b1cd58de536c96f32807c531ef10").inTurn("reads", "66640c065fe97dcfb84666559945422116fbe4ec")
	ScriptWriteExtend   = script("write_extend", "b0c192a4dfe7176fd189ca81a6677502648baaf2")
	ScriptReadExtend    = script("read_extend", "e68d1dd87b5549676928a40bf5a6005f39136c49")
	ScriptWriteRepair   = script("write_repair", "ef1421f64307816c9e4ef8daade21950fb3c43bf")
	ScriptReadRepair    = script("read_repair", "d25031ab6fa59340b147f6d4c3a78e22f1d0a5a6")
	ScriptRWRelease     = script("rw_release", "4b8260833cb6ab21b4ed5f20e1319e7215caf50b").inTurn("rw_releases", "5275761a27f2d556d930a7ed3387d902a06ceb8e")
	ScriptMultiAsk      = script("multi_ask", "ab1d49350d8ab71850cf9b78c3ab4ccb311e3952")
	ScriptMultiExtend   = script("multi_extend", "4cdabdfb311dc2ea9b0e49d897ebbcaa978e62af")
	ScriptMultiRepair   = script("multi_repair", "011943f430da11ee0f3c408a2e6321f5c7e34510")
	ScriptMultiRaise    = script("multi_raise", "dca135a394d98da4fff83d458a0f07e40e52c924")
	ScriptMultiRelease  = script("multi_release", "4d9d9a4abbff75b158cae35265ffb55d6467a801")
	ScriptPermit        = script("permit", "ab809dad52a053a21b9b86bc60ac0a753a3b19de").inTurn("permit_takes", "a571dfaa4d69b6b70fbc1f35ffbc260ea99ff338")
	ScriptPermitMove    = script("permit_move", "f8d24553b6dba85af90cca7ec0b61881cc1f0d15")
	ScriptPermitExtend  = script("permit_extend", "e426bd17fc1ffed5cc6bc03b7897a4e9176c763d")
	ScriptPermitRelease = script("permit_release", "bb9735cb8bbc9218eb1252d626039fd416853949").inTurn("permit_releases", "9dafe32d1eeda1de03608f232942740f7a6523b5")
	ScriptPermitResize  = script("permit_resize", "dac079e1a642b4f388f477a5104d2fb2c464ae28")
	ScriptPermitRaise   = script("permit_raise", "a9cd222a6a9da76cb8ec02d1854a9affee8dc6f4")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptMarker        = script("marker", "a21bad689579d3dd86db0ce85da5cca43931ef93")
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

// parts returns the parts of a script: what it does where that is simple, the libraries
// that it needs for the rest, and the rest.
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
