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
	ScriptAsk           = script("ask", "6441362f44590c1a86ccabb5b7b13c3b87a781f4")
	ScriptExtend        = script("extend", "56787c35cf1436408b9c3f1b8084213b01c13c43")
	ScriptExtendCached  = script("extend_cached", "e33120e24cb92f79b97575c49f4b2470c351bfb7")
	ScriptRelease       = script("release", "29d42ba73c872bf4409f445bc37dff4563db0a95").inColumns("releases", "48d64cc7d1aa8ff526a6e8fdbe7f9946272bc95f")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "960fc7888db84dc02ceb2a025314170e3eac284a")
	ScriptFair          = script("fair", "6b00ab4d8e992353590f806feb570d248c54e47d").inTurn("fairs", "f0c4ddc6afb139d16632fe5f090900e99a148fd1")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "4fa35d2ff7da985c270db57a6d9c7d7530f33c57").inTurn("writes", "507983c90008c8e9b56f8a400af4b32b457b787c")
	ScriptRead          = script("read", "d1d4c59b715297458e8c1c0cbcf873c0f3692562").inTurn("reads", "2f8ead2d57ea793f24ee4d9d4a15b6e41642fa68")
	ScriptWriteExtend   = script("write_extend", "a00e67d1cb8dd94e07e7448ab127f57337bd2493")
	ScriptReadExtend    = script("read_extend", "29b92eb57edabca364191583941ff65d505e8027")
	ScriptWriteRepair   = script("write_repair", "b16385b81d00fa8e37bc5dd9ce747011a8ddd250")
	ScriptReadRepair    = script("read_repair", "3d994127dd91bba30d0fed3067617e7bcfb4ffbb")
	ScriptRWRelease     = script("rw_release", "8b6f3bfe09d1d3edecb39a75755494908d55f032").inTurn("rw_releases", "8f785b6990752464f636d2fb114f8f5b92a8e6c8")
	ScriptMultiAsk      = script("multi_ask", "a091767a2dd6f9864a24d64025e67d4f5bf43a7d")
	ScriptMultiExtend   = script("multi_extend", "f456dc35281f872ec7faa920a3b0be35377c1bba")
	ScriptMultiRepair   = script("multi_repair", "81d873d565f39655bdc069253ac7e7d8149a97a4")
	ScriptMultiRaise    = script("multi_raise", "98fa1fe3bbec3647233467613f3e6847127be9f1")
	ScriptMultiRelease  = script("multi_release", "88957006caef1239d817a91fdd2b5980ceabda7a")
	ScriptPermit        = script("permit", "a7557d39592a0f34ae8634ff0c40c45a8a8707ad").inTurn("permit_takes", "a02c479fb1dfa99bd10679c38fad9bbef82095ae")
	ScriptPermitMove    = script("permit_move", "4c83a945d7f3c945da7ba0868fa6bdb80a31ab2e")
	ScriptPermitExtend  = script("permit_extend", "f1247de85f39021ae3fda525b6bf814dfd534628")
	ScriptPermitRelease = script("permit_release", "ca0df102bdd345a0ef4bb81f65afe1b75502fa4f").inTurn("permit_releases", "ecc4de068087d150eb91a3059175df6ba1be1cb2")
	ScriptPermitResize  = script("permit_resize", "026feabdb76a70c765c330cbc31a1e22b99b43ba")
	ScriptPermitRaise   = script("permit_raise", "2202adb3e4cec589f7edeafb1ccead6613e57a3e")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "ccda7878d16dbd9fb047f8ecb6e9d198d953de46")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "74f6ac34b68c4c04c8a8507eaa0d3c21462ae468")
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
