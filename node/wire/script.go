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
	ScriptAsk           = script("ask", "f09de9b9cf0a463361b85f24dd6181693072f0a0")
	ScriptExtend        = script("extend", "ae7644b13d984809af54eea6dcab64d950cbac0f")
	ScriptRelease       = script("release", "aab5b44cd70074798b2867c4d906ac409c96bacb").inColumns("releases", "6ef2570e69fef93d92e3d5569c51817dcf39a6de")
	ScriptKeep          = script("keep", "d5bb85477d0bf62ab4a0c5dc584804d07dfb0f56")
	ScriptInspect       = script("inspect", "610a7e63dbf578d58884a9b0f72e99966c3fd2c1")
	ScriptFair          = script("fair", "27afc990ef50349c6d8324d8359c4cb283a2a63f").inTurn("fairs", "a7f49d88a8a34bb09a37e329aa2974d5b09d40fb")
	ScriptFencedAcquire = script("fenced_acquire", "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf").inColumns("fenced_acquires", "2c05b83607b185ba2e26f22a92d3768b99d9ac3a")
	ScriptFencedRaise   = script("fenced_raise", "ab4c805d040e5f790974fc8cebe42230a2ffcfa9")
	ScriptFencedExtend  = script("fenced_extend", "5941632b9de7682f0eace10c38e8a68b52f50090")
	ScriptFencedRepair  = script("fenced_repair", "ef8ded555ff639e67b053a5a49b8ff258407e738")
	ScriptInherit       = script("inherit", "a0037271c4f87aa58060f24127bec0c6cedbe114")
	ScriptWrite         = script("write", "f094cd82d137d2c4c2c9eaa4a7dccd156d9f1491").inTurn("writes", "ccb20dba65e71128bdf376d0edbc8e1942b02e6d")
	ScriptRead          = script("read", "6186d16ebb4bf1ef1ef7841ae5f5a3389f14c935").inTurn("reads", "04e77ad7dedf9df573867f20e8595fd1e2707a77")
	ScriptWriteExtend   = script("write_extend", "58bea711f3bc9e67cded50d33e156da52840d7e3")
	ScriptReadExtend    = script("read_extend", "bd7454d6250e3686b50065d532081bb0af144937")
	ScriptWriteRepair   = script("write_repair", "98c8525bfca4bf059568217b631fc89d8a9b1112")
	ScriptReadRepair    = script("read_repair", "92760907df9cdcc565658b149f8a55599ad39663")
	ScriptRWRelease     = script("rw_release", "1396c7958c08b138b7606e383df0b7c81baa736f").inTurn("rw_releases", "1e91b3e557dd2805979ddb9b9578ef31ea458cbc")
	ScriptMultiAsk      = script("multi_ask", "8d889ff44983715961f5399721d9f590f82f334b")
	ScriptMultiExtend   = script("multi_extend", "16596369ded7bf6b7d962a737fd59a5b779147f6")
	ScriptMultiRepair   = script("multi_repair", "94b6f140ad4a1ae515bfaa0856d21b7f47089d98")
	ScriptMultiRaise    = script("multi_raise", "95d5542873fc241b216102840845c8a8fc9a4a8d")
	ScriptMultiRelease  = script("multi_release", "9f2ea800bc9711ce28cad59a71ca040deff5cf96")
	ScriptPermit        = script("permit", "6d47eb630c8d58824486c14ce2e9c2f8cddf27d2").inTurn("permit_takes", "848cff1c197424aeced51d495a591a5b420b3ca8")
	ScriptPermitMove    = script("permit_move", "2f150cb963febcf4d85aef7eb680e421afdd7a0c")
	ScriptPermitExtend  = script("permit_extend", "267c7ffc3eb59326b5fe718fc0f0412a32e920e1")
	ScriptPermitRelease = script("permit_release", "c1c923474887d4ec96762a34343c41fd48b5f23d").inTurn("permit_releases", "577d3e0bf9fa6bc42495ee7494ae0eeb854f0e53")
	ScriptPermitResize  = script("permit_resize", "7fe97044e362b2c2c6b7046c3ed9be72721967e0")
	ScriptPermitRaise   = script("permit_raise", "6f658370ca24785eeb09de0e5a6ee0c95bda9ab2")
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
