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
	ScriptAsk           = script("ask", "2e499fa4d5fbe9594b35935514f3549a44c4f392")
	ScriptExtend        = script("extend", "daf949f04a69673e933d690038b0471950fe1abc")
	ScriptExtendCached  = script("extend_cached", "1101db50baa321e678ab2a66560b35c51101f35f")
	ScriptRelease       = script("release", "268a917c514a790897e7004c5df611c3bd1e47ff").inColumns("releases", "ceaff1e333c3e57f2e011e95e467937d460c031b")
	ScriptKeep          = script("keep", "1ee8590508b079f760e94b66796ca674aed529af")
	ScriptInspect       = script("inspect", "f04fb290ee9cb5591472c31baa927ed7e7efff09")
	ScriptFair          = script("fair", "deaf316b6eaed6ae600abb306d0d1cdabdb5d013").inTurn("fairs", "7a584fa69cf9f27cf79526ed7700fb40d19c8fc4")
	ScriptFencedAcquire = script("fenced_acquire", "4ca1cda2cda3259354436403ffabc52c3ef786b4").inColumns("fenced_acquires", "2834b7cccfc1fcf604b982a6e3a52a6626a5d3b2")
	ScriptFencedRaise   = script("fenced_raise", "19fe3447fd478d4ba7dd057cece752d194f1874f")
	ScriptFencedExtend  = script("fenced_extend", "76e6fd722ae6ef7af620555691b80e6a154c12a3")
	ScriptFencedRepair  = script("fenced_repair", "c38e5aa65bd88d77eb2afd2ce37323fc6882a4e3")
	ScriptInherit       = script("inherit", "c3880b98d44ec7a8f3927060b5246ad334c2ef5e")
	ScriptWrite         = script("write", "d9190f02f83ebf965ab3250adf16a47f6d44b61b").inTurn("writes", "a574e45206b82ea438cc72162c2a619635104da0")
	ScriptRead          = script("read", "a614b0c48562c733c5af553124c55a00f406c110").inTurn("reads", "f131f108eab67e2faa995de24662a6af21850496")
	ScriptWriteExtend   = script("write_extend", "7cee180ad435f7d4136a41b2bea233a4a43604e6")
	ScriptReadExtend    = script("read_extend", "a14a41a9a21aa286caf68ef0a7489586b53653f5")
	ScriptWriteRepair   = script("write_repair", "2321b9763c8556c832a27fac2affa1a6a48dd054")
	ScriptReadRepair    = script("read_repair", "8b8f40fd18c7d81e05a10d292d7425cfbf8fd05b")
	ScriptRWRelease     = script("rw_release", "0d94e121f31aaca452a53520d5bd98bc7ec0e8b5").inTurn("rw_releases", "cdbb3141f931b53c3a3dfff4d0958ae3ca371c25")
	ScriptMultiAsk      = script("multi_ask", "de1ab5e2edc3aad9fd16b5683d26c10d6ab3e7af")
	ScriptMultiExtend   = script("multi_extend", "cdf2eedf658669822e588025ba7c648b614aeac8")
	ScriptMultiRepair   = script("multi_repair", "f97e979fb655a2994c1a8bfcc31cb870b57d114a")
	ScriptMultiRaise    = script("multi_raise", "e3419587f1e13f04259603a03633849694f82a25")
	ScriptMultiRelease  = script("multi_release", "215c9f90647c1a2dd22946dde746efa70d54e3c0")
	ScriptPermit        = script("permit", "eec0c418f9852b009d656095752f083f7f7461c3").inTurn("permit_takes", "e41138ec2d1ec8b0598515163d2180b2432deba1")
	ScriptPermitMove    = script("permit_move", "af70dd2e92e8f1577b181e52e63f67076cbdc3ff")
	ScriptPermitExtend  = script("permit_extend", "cf0763dbbd85f101b681ddd94db892333f17a14e")
	ScriptPermitRelease = script("permit_release", "e5b805c0b791df801b35bcb436c66bd0f1206210").inTurn("permit_releases", "a85e32968145160fd70c948d43474f48c1af54b6")
	ScriptPermitResize  = script("permit_resize", "fa2fd16eb96c88e489249e0dc19aa229d6ef2e84")
	ScriptPermitRaise   = script("permit_raise", "d8b468daa7fd844ceda38a020117b9e6e831d235")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "fa21bbedd6c91e11de7be2093519e7397a01f1ed")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "0e42105d7a9fab69e05ff5e4aa77c162c7a89182")
	ScriptMarker        = script("marker", "69ff42b35e14774bc5afb9a6980fd736574720c4")
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
