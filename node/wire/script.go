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
	ScriptAsk           = script("ask", "e17d5d170337ad205f19c76551e074f49432d9c9")
	ScriptExtend        = script("extend", "56787c35cf1436408b9c3f1b8084213b01c13c43")
	ScriptExtendCached  = script("extend_cached", "8f06372c36d601bd7dcb084127059448665b1a35")
	ScriptRelease       = script("release", "4abb60d4af04869be263e222e891f4c896d89aad").inColumns("releases", "bc46656258e089d33eea3884761dcae5b919f43c")
	ScriptKeep          = script("keep", "c597b9128d03adfedda7db1fc72a228f1573aae2")
	ScriptInspect       = script("inspect", "a9a8c8249fd86783e9d53bf818a4783d7b8407f3")
	ScriptFair          = script("fair", "bd9d77b6a0f5fd96d0c946c240c75cdc8907efb2").inTurn("fairs", "a1e1f38fe24ec63b028112c7437b52a36de2a100")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76668295e848ee1560b1656c8a7d5521aac9db9b")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "e6ba1be944ad58c50999242ca4d06187941be6ce").inTurn("writes", "f4260501b0daeb30073c52341ea737767fc8b78f")
	ScriptRead          = script("read", "ee606abbae3df97996548a833d24f15958d3e080").inTurn("reads", "199ce82b576a3e3fad00d6b7b387a0fae3bc15d9")
	ScriptWriteExtend   = script("write_extend", "075b4bbd32961356aabccca8cd255b185a8569e6")
	ScriptReadExtend    = script("read_extend", "380689064c4da64af8316a5f3ca911efd98e5718")
	ScriptWriteRepair   = script("write_repair", "e026f701ec1006c2e215a30e3d897e11bbd6b841")
	ScriptReadRepair    = script("read_repair", "d8ba4e929b46f56dfd52007867a2122c19083e2c")
	ScriptRWRelease     = script("rw_release", "820ee91ad8ddcc0dc4819882829086cca2fb60d9").inTurn("rw_releases", "76a0cb29a2461ae5c58dc74b55e88d36a056de5f")
	ScriptMultiAsk      = script("multi_ask", "2241ba12929819ce0765fec4ec2e81b4bb76dc3a")
	ScriptMultiExtend   = script("multi_extend", "7dd4efa0d847550fa713e026601238cd17114ed5")
	ScriptMultiRepair   = script("multi_repair", "550beaae070047928d3393e0d4c185da76d8a6e6")
	ScriptMultiRaise    = script("multi_raise", "df766eeca3d31b4aa28f995c4a2c9dd21cc0fd03")
	ScriptMultiRelease  = script("multi_release", "442d31e88332534262f45283867a5e166a856d62")
	ScriptPermit        = script("permit", "10f7d09442ef285cf45fb5ad438a9235e5044f47").inTurn("permit_takes", "238eac09e35fca26d9fc338d51a1728b2a641557")
	ScriptPermitMove    = script("permit_move", "eaa68d4eae2562f41916e995b0802e0db29a02b3")
	ScriptPermitExtend  = script("permit_extend", "3b52c69f8c87e8656253453ad939444c7d08b741")
	ScriptPermitRelease = script("permit_release", "832fdb2e6bfaba547dd6385b6af7b70ee3e092d5").inTurn("permit_releases", "d26a03c701c7fecb715589e71c9855d9f29f936a")
	ScriptPermitResize  = script("permit_resize", "531da7d3283eb4d014534c589eb9db87c7bdf87b")
	ScriptPermitRaise   = script("permit_raise", "b9ec7b49a5bf704308042717441c66a6b9587a4f")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "22918706f53c89237e7af61d92ae1d5ad6b8c7d7")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "309a340dd3fb17e2bb4c17ffba08d2490485d76b")
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
