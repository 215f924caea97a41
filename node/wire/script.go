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
	ScriptRelease       = script("release", "38cad29bbfaff834d5466844153be0395aeaf9d3").inColumns("releases", "237a3501af8ed299324cc276ccd31f8092065dd8")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "a71bf3a3b7ce9a074c11160019d7ca0f64425fb1")
	ScriptFair          = script("fair", "d1692136b328d4395bc4ad193f43175b9472d1c5").inTurn("fairs", "c9c07f94737326972a7f59addc72d87cabe8be6e")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "074fff1decfe5fcc7769aa0fa1e51ac102264a63").inTurn("writes", "ca61054760afff7c72f6d773f46e9109e5a977f6")
	ScriptRead          = script("read", "ccb0f9363e753bdac9156d6a60de81e5f218a4c2").inTurn("reads", "177806fa719ec1ecfe2b48b7e0dd1147fd46e90b")
	ScriptWriteExtend   = script("write_extend", "c74c4fdf1b271304814e6765a106f5d6b60e35f8")
	ScriptReadExtend    = script("read_extend", "4ffa49402c928c3da4be7eb99cc6bd5cce57d1b7")
	ScriptWriteRepair   = script("write_repair", "e911aa31adc120bf4a12ce991f1d56a00ea16a29")
	ScriptReadRepair    = script("read_repair", "5ac6f8ad3d66c662d239d24183c715b231470890")
	ScriptRWRelease     = script("rw_release", "8049dbe6aab8e5e875b35e0c61257f4f2bc45c87").inTurn("rw_releases", "c8c4ff08e9cae3d8f51ffa38c210b2872c174ab7")
	ScriptMultiAsk      = script("multi_ask", "832d8f0cdada5519ec9c94ed97a98bdd3dbbf0a3")
	ScriptMultiExtend   = script("multi_extend", "586d8feedb3cbcab63598db782bd60d9503763d5")
	ScriptMultiRepair   = script("multi_repair", "7044fcb85c21177bb47079501d1650a078905e72")
	ScriptMultiRaise    = script("multi_raise", "69bdf6b26c0c81f4ee1cdb21c61874ca05c8e24e")
	ScriptMultiRelease  = script("multi_release", "0803514801795725d409688173a41ad05771c643")
	ScriptPermit        = script("permit", "a7bcbf8b1070bdcea067a066b669f43deac1322b").inTurn("permit_takes", "47f21925dae34f40b34ddab71eaf88f01d1a02b8")
	ScriptPermitMove    = script("permit_move", "d232a0a55795e2622f59ed66956cd6151e1d97bd")
	ScriptPermitExtend  = script("permit_extend", "ec0cd0c19bcf722a50df1ec3ca7944416223df1b")
	ScriptPermitRelease = script("permit_release", "c837a2679cb527c8f11cd7e632408ebfe312f644").inTurn("permit_releases", "300133bf0d54c40bc02116ab8b72302bd0f07ea1")
	ScriptPermitResize  = script("permit_resize", "db495939b676189c2ff0665710a592fa51ba8873")
	ScriptPermitRaise   = script("permit_raise", "5bdccce4c77f1f1701640326da6920149b39f98f")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "093b0b3e5e8554447a3e466f837a5b23aacea851")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "bec99fc717d9c450aaf79c8b7af10bebed590b67")
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
