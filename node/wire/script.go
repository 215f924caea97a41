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
	ScriptAsk           = script("ask", "3731ca48754953f7e1249d2c756ba21248a339d1")
	ScriptExtend        = script("extend", "56787c35cf1436408b9c3f1b8084213b01c13c43")
	ScriptExtendCached  = script("extend_cached", "4d3f6e5b064e4baceb544a2c96cb703f7869b721")
	ScriptRelease       = script("release", "e0553af1ca07bb4738915513617224bfae66d4ee").inColumns("releases", "c5b25ebcb472be6eb9095ade5fa842159e24ab0a")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "ea5605a39fa5080212986df19c1cafc3c9c01f67")
	ScriptFair          = script("fair", "aac4f992a5cb78ff3e04ababe1decd6c735fa037").inTurn("fairs", "da9a76090e03ad121fd0aed143a2fcdf0664e45d")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "f3690e142aba44c3f7b62747f9f0c5530c05ab85").inTurn("writes", "e33f8f0fdeb973c8b3a82ad1bb275903d94c06f0")
	ScriptRead          = script("read", "38e9b7b58c1071341c54d0f731b25753774552c9").inTurn("reads", "131f66c2dfd047e127c0c00d7dc7dd6d71dfd9e8")
	ScriptWriteExtend   = script("write_extend", "f0943d2a50cdafa7e0347628f921ed8f79b80f0d")
	ScriptReadExtend    = script("read_extend", "2a93bb57069b853853aabee3b397a61ed095cea3")
	ScriptWriteRepair   = script("write_repair", "1c9bbc5d19a11653e6d26b094665a70701a70d36")
	ScriptReadRepair    = script("read_repair", "ca0ebcaeedbf9b6c6b1fd2e382c353cae52e6b32")
	ScriptRWRelease     = script("rw_release", "4d2207e2402517f6f8f370a4af3e7db6ddbfe817").inTurn("rw_releases", "e7268977f242cb5081eb6d6c3149ce7b2c3ab3da")
	ScriptMultiAsk      = script("multi_ask", "0b19c03c34633c097d702553edb2fda8e720c3be")
	ScriptMultiExtend   = script("multi_extend", "7d26c2ed56be3960f19185636e87cf0f9dcd7a71")
	ScriptMultiRepair   = script("multi_repair", "18436ab8adbba84e3b3067ff402a168b8369424e")
	ScriptMultiRaise    = script("multi_raise", "b3cf5c83d670002a6278990ee53917b4351c9135")
	ScriptMultiRelease  = script("multi_release", "37e336d0bc3845aad17017eb53cd42977893a4b8")
	ScriptPermit        = script("permit", "e9ddba031c4fd3626928be4a7f14d1bec467c094").inTurn("permit_takes", "47e4f8a9d6c9e81782927a8c95a80465c10005b4")
	ScriptPermitMove    = script("permit_move", "342a8bba0ca33acf78e69b4af68d02d08bfca6ec")
	ScriptPermitExtend  = script("permit_extend", "db9ab2d01b3d45a413273c5a6affe30cf71e9bf6")
	ScriptPermitRelease = script("permit_release", "7b25020e7296462ab892ceca67ef2f99bd2c0ca3").inTurn("permit_releases", "1139a9e1a8903dcf060dc1ccce52d6c309a041f6")
	ScriptPermitResize  = script("permit_resize", "75fdd36537f38a8266e5db98d7c8b22b826610e0")
	ScriptPermitRaise   = script("permit_raise", "1beef49238cefb0323f7aa2704513855fc01f83b")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "fd9c35b2eb4ff07224307f8f0e9e900223861302")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "897cc6a9beb3ddd97494620835ad2b49c3cea571")
	ScriptMarker        = script("marker", "0e33cbcdb246ae471fa5298f781f1f4f77fe069b")
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
