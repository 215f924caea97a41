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
	ScriptAsk           = script("ask", "7c3cbecc3a557d00c1759c942add82f9761be2d6")
	ScriptExtend        = script("extend", "69f554b42ce01f964776f0f3435f6508cbbedb8c")
	ScriptExtendCached  = script("extend_cached", "699bfea9862460743d5f0c0bb8bd717e607c2599")
	ScriptRelease       = script("release", "d07d4c77810de7565e6a85de3c6f09ee96ad5bcc").inColumns("releases", "4ce3abcf39115cb3498d2f6f56a3917e537cc6ca")
	ScriptKeep          = script("keep", "3a9ce029866124f1af1e761a5822748408ec3f50")
	ScriptInspect       = script("inspect", "ec634659eef63a9bcedb877c33fc2554d6d1b8e1")
	ScriptFair          = script("fair", "592ff2ab8511c6b7044062c48e6e6d328b4a2a9b").inTurn("fairs", "26c6300ee89172ab0056b6c55c26a655223646e1")
	ScriptFencedAcquire = script("fenced_acquire", "e4853b65f8a41d8ca31a6b542c88d754d7b92e50").inColumns("fenced_acquires", "16503a83a7f9dbd665692869aed0d39585a31c61")
	ScriptFencedRaise   = script("fenced_raise", "659cdc89ba8c325eaffd86d809bbcf9217f1b578")
	ScriptFencedExtend  = script("fenced_extend", "651d9eb4ac59074bb05f039f608e83e4ef668db2")
	ScriptFencedRepair  = script("fenced_repair", "c671520bcb91fc6f2ecd7c002e489a4ddf1d7204")
	ScriptInherit       = script("inherit", "d1bba9d86f776e168ef4f7aec8c050ffbb6cc84c")
	ScriptWrite         = script("write", "6180c5fada62325a2d337519c44c8fad1c06c8dc").inTurn("writes", "daf9b0c14f4b087f0ed2f339845a6d6a5bc21594")
	ScriptRead          = script("read", "28f38458e3b2051ddf87a1b6a96560d6c0ff76f9").inTurn("reads", "aa09dc881dd6bd55544db2aeea9f214ef71be28f")
	ScriptWriteExtend   = script("write_extend", "d9b157e7d55b1de18d9f4f07f8a64ea438d9889d")
	ScriptReadExtend    = script("read_extend", "34308b219f41260a1d189dddb027b55530036d9f")
	ScriptWriteRepair   = script("write_repair", "3a0e85bf13a9b12c7f57bfe2d698ffe2295a2b48")
	ScriptReadRepair    = script("read_repair", "b44ea9628d93414b7bfbd28a5f4cc9e8873a14b3")
	ScriptRWRelease     = script("rw_release", "f757470ed1dd09f7304669dbd3172333a992051a").inTurn("rw_releases", "47f583b6a739ee861bc445774e7d3913c9c86d5b")
	ScriptMultiAsk      = script("multi_ask", "cb6af57c89d0351dd1f219ea243c2bea6ec1d042")
	ScriptMultiExtend   = script("multi_extend", "4dde7fae85b150f4329f25ba9d031106edb0185f")
	ScriptMultiRepair   = script("multi_repair", "89fac9ac182e4c86e7a12ff93e8085efd2489ef5")
	ScriptMultiRaise    = script("multi_raise", "86f05d11884a635b19ba385a81f77328924fd7c0")
	ScriptMultiRelease  = script("multi_release", "37df96b81db5212f092e99e65f02c4938694ea93")
	ScriptPermit        = script("permit", "d1af162b85f22d601de214f392a611cd9897bf5d").inTurn("permit_takes", "2e7570f2669611af0c424cdd7cadeccad0fa7530")
	ScriptPermitMove    = script("permit_move", "0b5f69cc3ee159b46f4b738b8066151f5c8f4b72")
	ScriptPermitExtend  = script("permit_extend", "977125d2f7e170039d5132d40c7ec4b7d1c5f188")
	ScriptPermitRelease = script("permit_release", "0762db05171eaa84b29bbd9acd4c321c0cdf87a0").inTurn("permit_releases", "b93c3348e003c1e8a88144da2adb22e37f2001ef")
	ScriptPermitResize  = script("permit_resize", "fb5cb610d24c818dfc78f1621b3239a644733aaa")
	ScriptPermitRaise   = script("permit_raise", "1210830461ec1c5fc6ba3712cc36137871c039f1")
	ScriptLatchArrive   = script("latch_arrive", "c370527602a72e942e1ce4cf0fd084a3b3ca27ab")
	ScriptLatchCount    = script("latch_count", "57b5fe1323a6f336da5af76ac2ce00cf69853a0f")
	ScriptLatchRead     = script("latch_read", "9ce9185bf31e274413c345c205a27e4abbceb0fa")
	ScriptLatchWrite    = script("latch_write", "f2e093a1c93ae41b0436fca6f4c9ac94d98e3289")
	ScriptProclaim      = script("proclaim", "ada2219ebffeb9bc697d558613a4ed0fe9eb72f8")
	ScriptLeader        = script("leader", "4cb243e03a224cb9b7eb92aea6f0147fae3ff6f1")
	ScriptYield         = script("yield", "465af3cc42ddb5c42e637130405088f0bd3cb3d0")
	ScriptRequest       = script("request", "886aef692e03cdd3d2ad365a200f797f1d056ac9")
	ScriptTransfer      = script("transfer", "a5ee32b47102aa2e60b640b28d068c55eeae505d")
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
	// later begins the next line if there are libraries for what is rare: NAMES: LIBRARIES. A call of
	// later() returns the functions of these names. To make a function takes the master time in
	// each call of the script.
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
	libraries = together(names)
	if line, after, found := strings.Cut(rest, "\n"); found && strings.HasPrefix(line, later) {
		names, rare, _ := strings.Cut(line[len(later):], ": ")
		names = strings.Join(strings.Fields(names), ", ")
		libraries, rest = libraries+"local function later()\n"+together(rare)+"return "+names+"\nend\n", after
	}
	return short, libraries, rest
}

// together returns the libraries of these names.
func together(names string) (text string) {
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
