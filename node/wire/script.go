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
	ScriptAsk           = script("ask", "87810562c348af4bf285a62e01df5ecde6e463aa")
	ScriptExtend        = script("extend", "69f554b42ce01f964776f0f3435f6508cbbedb8c")
	ScriptExtendCached  = script("extend_cached", "35cdca42a548a2477ac9ef9284c38200fda4554f")
	ScriptRelease       = script("release", "40da5dcad5bb15ff2e69a74ea40ba4706e0236f1").inColumns("releases", "0aa4286ce16117bc69c0d1ad65769bae84d552f1")
	ScriptKeep          = script("keep", "3a9ce029866124f1af1e761a5822748408ec3f50")
	ScriptInspect       = script("inspect", "746f53e5012b827e7598e7c1b902f1a1cc2d08ec")
	ScriptFair          = script("fair", "ccf9d3b1e48ea7e436c154bca2e6d8acaa6cb39f").inTurn("fairs", "655fc30043d6ef9a37eb3e653fa97b8b8f49ee22")
	ScriptFencedAcquire = script("fenced_acquire", "e4853b65f8a41d8ca31a6b542c88d754d7b92e50").inColumns("fenced_acquires", "16503a83a7f9dbd665692869aed0d39585a31c61")
	ScriptFencedRaise   = script("fenced_raise", "659cdc89ba8c325eaffd86d809bbcf9217f1b578")
	ScriptFencedExtend  = script("fenced_extend", "651d9eb4ac59074bb05f039f608e83e4ef668db2")
	ScriptFencedRepair  = script("fenced_repair", "c671520bcb91fc6f2ecd7c002e489a4ddf1d7204")
	ScriptInherit       = script("inherit", "d1bba9d86f776e168ef4f7aec8c050ffbb6cc84c")
	ScriptWrite         = script("write", "da2d44be716d3d0d304b604462a146c1c7c450d7").inTurn("writes", "c904a8e11bf359037f0608d2fc9db9eb9279b4b2")
	ScriptRead          = script("read", "2d39c12c6c68fe01be433fef862891c653dd4462").inTurn("reads", "52bcb84ee854963c53cebafe4478e466ff47bb6c")
	ScriptWriteExtend   = script("write_extend", "59a5d8cb0e77dd2dc1f349eafb6c0c0fa7aa4eca")
	ScriptReadExtend    = script("read_extend", "4496a255581c214afb5bc31737b8ff8ca34d72bf")
	ScriptWriteRepair   = script("write_repair", "503640fdab9a1746e1567440a422eb64bd65506d")
	ScriptReadRepair    = script("read_repair", "43a464f7f5f473e6d9e5fe36d31c75af04d3ae9b")
	ScriptRWRelease     = script("rw_release", "fb6db6e446d47e6f94f40d15cb9ea19e5bbe2cab").inTurn("rw_releases", "5d3b6fd0dc1d76fd180eb8299ab6df5c373a66ae")
	ScriptMultiAsk      = script("multi_ask", "5045a9f5418cbcfb52db48ae124a9717de40a061")
	ScriptMultiExtend   = script("multi_extend", "07ed32c4f31c0ff802f9eb103efd73fd32a25236")
	ScriptMultiRepair   = script("multi_repair", "52e6336d33ca44848da0e1c98be79b0bb5783738")
	ScriptMultiRaise    = script("multi_raise", "ba8f2f13ac55cabe6cbd16f905158be778040303")
	ScriptMultiRelease  = script("multi_release", "61050f84f58f2fe3b31e4a4271476eebc832ea01")
	ScriptPermit        = script("permit", "79db2792719ee439ee331d1821facafe042f64aa").inTurn("permit_takes", "22ab989af85f1b5bc8298a47e78cb6264ec8f8a4")
	ScriptPermitMove    = script("permit_move", "1a7a8638bc23df68ce602b99776cc92a17c87b2e")
	ScriptPermitExtend  = script("permit_extend", "4b74278ce1c1ada2b05ef15b4fb4982e01d9695c")
	ScriptPermitRelease = script("permit_release", "bdb19937527a25219ac1cc5d7eab9ef332922590").inTurn("permit_releases", "87eb3a18585f45f84a380720e2d077146e2b66e9")
	ScriptPermitResize  = script("permit_resize", "100049b063ad1bd0eabdabfeed25936c7f18c2f8")
	ScriptPermitRaise   = script("permit_raise", "4cb8b2d241fc82663d582a9f4a3e454924deb2b9")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "76ae33c16a793e29fb48f0c7f3cc7a64c55327c5")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "0ba60c1e3e319d395e69e1b7847c6fa1f0e631cd")
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

const (
	// needs begins the line of a script that names its libraries.
	needs = "-- needs: "
	// later begins the next line if some functions are rarely needed: FUNCTIONS from LIBRARIES. The
	// script calls later(), which defines and returns them. Defining a function costs the master
	// time in every call of a script.
	later = "-- later "
)

// parts returns the parts of a script: the short way for simple cases, the libraries that it
// needs for the rest, and the rest.
func parts(name string) (short, libraries, rest string) {
	text := file(name)
	short, rest, found := strings.Cut(text, needs)
	if !found {
		return "", "", text
	}
	names, rest, _ := strings.Cut(rest, "\n")
	libraries = concat(names)
	if line, after, found := strings.Cut(rest, "\n"); found && strings.HasPrefix(line, later) {
		names, rare, _ := strings.Cut(line[len(later):], " from ")
		names = strings.ReplaceAll(names, " ", ", ")
		libraries, rest = libraries+"local function later()\n"+concat(rare)+"return "+names+"\nend\n", after
	}
	return short, libraries, rest
}

// concat returns the libraries of these names.
func concat(names string) (text string) {
	for library := range strings.FieldsSeq(names) {
		text += file("lib/" + library)
	}
	return text
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
