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
	ScriptAsk           = script("ask", "30ff4b743f4b88ac6e2bb3e46c6baaaac94f195f")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptExtendCached  = script("extend_cached", "b8397b8c3c75284d7bc009bc64564ec4d29a7f14")
	ScriptRelease       = script("release", "8fb726a00c1ed86d6e6e31a53af6c32269f9d0f4").inColumns("releases", "d196d35c2ce638b20cdb78a09d6d6867fa664d16")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "01ea6c30c00af8ae3f74970ad183a2298697ee0c")
	ScriptFair          = script("fair", "31863cd6c14dc381b06dd9a39f2d67a69db455bd").inTurn("fairs", "be73eabe0e0599b075fdedf7918ebf1f53e244ce")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "d5ab96625223342b6a1773a1dc3c3b224212c43b").inTurn("writes", "7656bb24b1e29034686bbdc68e72d3541ab332b1")
	ScriptRead          = script("read", "e50769806b941a08730b8a88c00417b30301dce0").inTurn("reads", "e83fd4742b42117840e4fda309d4f0c3c259e172")
	ScriptWriteExtend   = script("write_extend", "5bd9a1f7946bfe82908525f6082e7401a0de4d46")
	ScriptReadExtend    = script("read_extend", "a791af0511cfeeba4b79a583ac276f71509674d7")
	ScriptWriteRepair   = script("write_repair", "e566b9c18e7b9a18352af26e4e0de7fac62dae0c")
	ScriptReadRepair    = script("read_repair", "01631da190d6ae910e89097493138e390d66f79b")
	ScriptRWRelease     = script("rw_release", "9a5b30be486c7f9f4639a714179a341456651a6c").inTurn("rw_releases", "8c18761d64c44e7f28608eadf27346a894acb2db")
	ScriptMultiAsk      = script("multi_ask", "916c200a8bac79bf87bfba4c6dec09c27605eda5")
	ScriptMultiExtend   = script("multi_extend", "2630cfb5ccedc656e3eeaf23a97360f109c7a2d8")
	ScriptMultiRepair   = script("multi_repair", "69a783419c94d5a9192e800a51e10465604a30fa")
	ScriptMultiRaise    = script("multi_raise", "c9de98f49183b29dc1d2cde1de2ddf01d0e345a6")
	ScriptMultiRelease  = script("multi_release", "1a976ab2233800371d7ea629634f09a35a8fe8a9")
	ScriptPermit        = script("permit", "0e61d5e6d89a144f9863ac8e8de4212e475250f3").inTurn("permit_takes", "d7ec912175f753dc62d093b5d6e19c20de10e4c5")
	ScriptPermitMove    = script("permit_move", "89fc199c6ea1cf4d64f626b845cb384e6e8d0b27")
	ScriptPermitExtend  = script("permit_extend", "115a4d63e7a834d17c35c60b71b95aa70da47a06")
	ScriptPermitRelease = script("permit_release", "a24385aa6ef82b172e9fbbf7d5d6fd1bbe4802a4").inTurn("permit_releases", "89cb8e1ad001a104af5a953d7320cf451c267c14")
	ScriptPermitResize  = script("permit_resize", "46c7fba872f1793f7e1ae9b8f699081c148428a8")
	ScriptPermitRaise   = script("permit_raise", "893dcf4991a22366f4f1008c7334c295bfcdc383")
	ScriptLatchArrive   = script("latch_arrive", "e318d3a6006d810d6862f0e157b8d36f8f168e32")
	ScriptLatchCount    = script("latch_count", "15eb906d773c073fbd10501b5528ad2db1ca90c5")
	ScriptLatchRead     = script("latch_read", "e0ac73ccd27b64971fb274c883085f31cf16c756")
	ScriptLatchWrite    = script("latch_write", "f77f07eee82f76ba6fd8ce8fde264b8437d8764b")
	ScriptProclaim      = script("proclaim", "ef25855272d36a7a93bf8f47c1e844f7040bb53a")
	ScriptLeader        = script("leader", "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2")
	ScriptYield         = script("yield", "ecd36d01dfc8ebbde30034fa8b5c979655b81c87")
	ScriptRequest       = script("request", "3da2c0f65fa44ccf9a152aa8ecf49b0c5432b53a")
	ScriptTransfer      = script("transfer", "7fa785acae78e3b340d6ebb3ed800810be50b48e")
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
