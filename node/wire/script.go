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
	ScriptAsk           = script("ask", "129c222d4d4b31561cdacb7cefce4214f7dfdf1e")
	ScriptExtend        = script("extend", "56787c35cf1436408b9c3f1b8084213b01c13c43")
	ScriptExtendCached  = script("extend_cached", "17531fe1aaa871ea6e39c03039ca908cf4641881")
	ScriptRelease       = script("release", "29a999665208b884430ca970d50d625e17cdf502").inColumns("releases", "760237e95b984399ea22e885dd925e2a1290f8a8")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "3accde60c4eb0c6ecf7599d0386805a9949a114e")
	ScriptFair          = script("fair", "7375296584d34e25a1fbe4ec0eac14411176913e").inTurn("fairs", "478d5a604fa6cf2011fa6c02abdf456957b7f44f")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "3306a9ed2657eae7d64d15cbd97934940af33013").inTurn("writes", "0e42a82ee2a8e0c51775bd34fba4c977d2597e2a")
	ScriptRead          = script("read", "3de6cbbe13eee4746adfa746e7b9f51786bc1d50").inTurn("reads", "17125db625839a5bdbf43c4cd69541cd6df9bb95")
	ScriptWriteExtend   = script("write_extend", "9f20af27ad5329a7eaaa47f835a3aae3316da8ad")
	ScriptReadExtend    = script("read_extend", "bc6374a01b207abc511fede86fe28d10c9d984f0")
	ScriptWriteRepair   = script("write_repair", "1b9147f2a9d07d423b59dd12dc54ea3347ad4a76")
	ScriptReadRepair    = script("read_repair", "293fe1720a08d68a0485f227236ee2f5651145a9")
	ScriptRWRelease     = script("rw_release", "59ec8a1d2db2f52e90d66bf152fb835b690a8c3b").inTurn("rw_releases", "b739ccf655d18f270d2f4e7d3adf4cb7b8addaad")
	ScriptMultiAsk      = script("multi_ask", "a47e12519c54acafb32766aaee39be3b59460f43")
	ScriptMultiExtend   = script("multi_extend", "fecbff9db87450275792d21d4f9efbc9b5197120")
	ScriptMultiRepair   = script("multi_repair", "53518feb1801f9c7e9b707c3d2de5922be090b3d")
	ScriptMultiRaise    = script("multi_raise", "4b83800697edd9409dece97a21350d94ba568d82")
	ScriptMultiRelease  = script("multi_release", "d0a81bd7ec332de4891b6d93ce0946ef69bf7806")
	ScriptPermit        = script("permit", "f718924b8d93a6d3a32e7a3cdb7cec295d9461a4").inTurn("permit_takes", "65afd285932c3d489ed8849c572eb29704630f7c")
	ScriptPermitMove    = script("permit_move", "02202fbc1d771822b738dbb328f5cf89eaac8a62")
	ScriptPermitExtend  = script("permit_extend", "964605b9a0479d674c8a322f12df69ea1d68035f")
	ScriptPermitRelease = script("permit_release", "792cd9adde3f75b1b977080e0746a414777e14fe").inTurn("permit_releases", "2d040723aae3afcee7a14678ce39dbb0b4cb8330")
	ScriptPermitResize  = script("permit_resize", "c2e0a35bd8fa0e1dd7de3c4b3ab847f06a6275c6")
	ScriptPermitRaise   = script("permit_raise", "9b608d9cc00b2f4791c27dc8ccf92f392fc1a686")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "7da587a04c7022d9be5620e90e17f988a7097144")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "6f9e79b4ca30f46390be551b33d2260df702d7fd")
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
