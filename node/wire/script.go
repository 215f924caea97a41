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
	ScriptAsk           = script("ask", "4a10a31192e53859e434e30fa9730ee3910039c0")
	ScriptExtend        = script("extend", "56787c35cf1436408b9c3f1b8084213b01c13c43")
	ScriptExtendCached  = script("extend_cached", "766455e7a456e9eca1231144ce587ab555fd99c6")
	ScriptRelease       = script("release", "6da95cc94fcdee1149437dd92049b7f392eb334d").inColumns("releases", "237a3501af8ed299324cc276ccd31f8092065dd8")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "a71bf3a3b7ce9a074c11160019d7ca0f64425fb1")
	ScriptFair          = script("fair", "d1692136b328d4395bc4ad193f43175b9472d1c5").inTurn("fairs", "c9c07f94737326972a7f59addc72d87cabe8be6e")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "5a3858e03d5c501d6f56fa6de95e30579110ae4e").inTurn("writes", "2f5095b2287ebbe4a8e3afc2bf1c1a3a9abcdc53")
	ScriptRead          = script("read", "ed45961d42f781f6c584f060866b9ccaf817ff32").inTurn("reads", "6f43464d27d80534a9d5b434635d3a16aa9cc15c")
	ScriptWriteExtend   = script("write_extend", "c10e0d0581631acfc86715df7861596ffdd05ab9")
	ScriptReadExtend    = script("read_extend", "15b26cb90ccf59fb93c734de5d5e7f379c449dfe")
	ScriptWriteRepair   = script("write_repair", "87ef91d2826d646871d2c74cb18b4657c0a93e99")
	ScriptReadRepair    = script("read_repair", "25a5e2acdbf7065568506906e3d79400f15c8c7d")
	ScriptRWRelease     = script("rw_release", "4e535799066e18b3e306c1367ccce2f915664b3b").inTurn("rw_releases", "f1db217b3fdf6e05496a6de33cd544d1c302028c")
	ScriptMultiAsk      = script("multi_ask", "832d8f0cdada5519ec9c94ed97a98bdd3dbbf0a3")
	ScriptMultiExtend   = script("multi_extend", "586d8feedb3cbcab63598db782bd60d9503763d5")
	ScriptMultiRepair   = script("multi_repair", "7044fcb85c21177bb47079501d1650a078905e72")
	ScriptMultiRaise    = script("multi_raise", "69bdf6b26c0c81f4ee1cdb21c61874ca05c8e24e")
	ScriptMultiRelease  = script("multi_release", "0803514801795725d409688173a41ad05771c643")
	ScriptPermit        = script("permit", "15dd98a336bb215c5b70c054138038c7a7c8ce2a").inTurn("permit_takes", "d26ba7b410d90ff46b9f6f7a7564f51301fe1e51")
	ScriptPermitMove    = script("permit_move", "aab08b9f9bf17f0c5f71a87d1b1897cf443799c5")
	ScriptPermitExtend  = script("permit_extend", "8a60b0dcfbd4af5cf85a98b53d8162bb13f4294a")
	ScriptPermitRelease = script("permit_release", "a74e8da43d9e3760c1214073965d91171f8d6301").inTurn("permit_releases", "275b5e9c6f9b7f0e861c5afb5f4c8f086f825469")
	ScriptPermitResize  = script("permit_resize", "f56667adc867d8435fdfc49bb75f4a914281e58d")
	ScriptPermitRaise   = script("permit_raise", "46fa9b991d4bb46cdeb0a2b6183da50d2db4cb03")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "093b0b3e5e8554447a3e466f837a5b23aacea851")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "e6c74edd7ae440d682b103654676aeb60f50b595")
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
