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
	ScriptAsk           = script("ask", "b8fac14887fb5fd81d76c4081425f02d167fd938")
	ScriptExtend        = script("extend", "daf949f04a69673e933d690038b0471950fe1abc")
	ScriptExtendCached  = script("extend_cached", "ebcf772e9e90805fc679855b1b6195b675e5c278")
	ScriptRelease       = script("release", "b43ea6f8cc4b2b7e942014745731ea5ab4057d6b").inColumns("releases", "ebd80fd6feba1fe22fc63af43975bbea899a6065")
	ScriptKeep          = script("keep", "1ee8590508b079f760e94b66796ca674aed529af")
	ScriptInspect       = script("inspect", "1a899144639fd4242870f3240626c72aa4820641")
	ScriptFair          = script("fair", "2e285dc7c3664a096c3ec49590629dfd8f035f72").inTurn("fairs", "0c1b39b0e6df66f45f42a08441abd60c80babb8b")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76e6fd722ae6ef7af620555691b80e6a154c12a3")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "54353d0758b7e97f758084eb9a7c2b7149b9e921").inTurn("writes", "854e94c3c64f123f3970e7265e366f7586427d14")
	ScriptRead          = script("read", "67017536707d7acecb8337333e28a4ca4918c7ce").inTurn("reads", "00f1d7ae11c61c1a2f4006a47d58f65f4bdf19a6")
	ScriptWriteExtend   = script("write_extend", "795831d1d62f419587c35249671567b877df5842")
	ScriptReadExtend    = script("read_extend", "a025439597e3cb97c2f2340d34b8d7c5087bb45b")
	ScriptWriteRepair   = script("write_repair", "f3c3292318d311d5840d9975a949ed3c0a2386a3")
	ScriptReadRepair    = script("read_repair", "c892abda359dacdfc6e4524ae694461c69f0335a")
	ScriptRWRelease     = script("rw_release", "8cb09e84f3a5879d2636653574f031d08af18666").inTurn("rw_releases", "8950b22491ef473e35477b25a6b1f03cfd2f56b8")
	ScriptMultiAsk      = script("multi_ask", "94e0dd713eda770ca2b3e99284e3e229b4556e8f")
	ScriptMultiExtend   = script("multi_extend", "183700dcb0048f4bf030ffaabeb75e0561f90b84")
	ScriptMultiRepair   = script("multi_repair", "f593209e464fbc7ad2188bf80547e2306a3b8f17")
	ScriptMultiRaise    = script("multi_raise", "d76b195270254fec531406b6c09f00657417d88b")
	ScriptMultiRelease  = script("multi_release", "6c1d890b186077156644ff4ed5f9bc01027f1157")
	ScriptPermit        = script("permit", "55b899df36a1577ad7431d374998bc72c2affb1d").inTurn("permit_takes", "b3c552a621bd59e05008768e6cf32965d564c2f6")
	ScriptPermitMove    = script("permit_move", "94e7775a576543921c0da3d43be19c96c1e5650d")
	ScriptPermitExtend  = script("permit_extend", "6d2d8bfddb37e645601e5dd747b14c696a41dc6e")
	ScriptPermitRelease = script("permit_release", "770580ba07e652fb7139bd21c2d6104d850797c3").inTurn("permit_releases", "9f3b1869c2097162cb6e17a4bc3a804ac3e55864")
	ScriptPermitResize  = script("permit_resize", "1311824510ec615280cfea0ca278ed47a1814766")
	ScriptPermitRaise   = script("permit_raise", "e497a668addcce989843d299518510c3eee38e1c")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "967fea97daa00f99daa7cc9b4bcc27e552b38ff4")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "1cddb7a79cb0491ef8914a35701101ffd6e3911c")
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
