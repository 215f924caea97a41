package node

import _ "embed" // the scripts

// Script is a Lua script that the masters know by the SHA-1 of its source. The
// hash is a constant that a test compares with the source, so that no SHA-1 is
// computed at run time (FIPS).
type Script struct {
	Name   string
	Source string
	SHA    string
}

// Scripts lists every script. Those of a plain Mutex stand first.
var Scripts = []*Script{
	ScriptAsk, ScriptExtend, ScriptRelease, scriptReleases, ScriptInspect, ScriptMarker,
	ScriptWrite, ScriptRead, ScriptWriteExtend, ScriptReadExtend, ScriptWriteRepair, ScriptReadRepair, ScriptRWRelease,
	ScriptMultiAsk, ScriptMultiExtend, ScriptMultiRepair, ScriptMultiRaise, ScriptMultiRelease,
	ScriptPermit, ScriptPermitMove, ScriptPermitExtend, ScriptPermitRelease, ScriptPermitResize, ScriptPermitRaise,
	ScriptLatchArrive, ScriptLatchRead, ScriptLatchWrite,
	ScriptProclaim, ScriptLeader,
	ScriptFair, ScriptFencedAcquire, ScriptFencedRaise, ScriptFencedExtend, ScriptFencedRepair,
	scriptFencedAcquires, scriptFairs, scriptWrites, scriptReads, scriptRWReleases, scriptPermitTakes, scriptPermitReleases,
}

// common are the scripts that every client needs, which are loaded when a master is
// connected. Each of the others is loaded before its first use on a connection.
var common = Scripts[:6]

//go:embed scripts/queue.lua
var queueLua string

//go:embed scripts/ask.lua
var askLua string

//go:embed scripts/extend.lua
var extendLua string

//go:embed scripts/release.lua
var releaseLua string

//go:embed scripts/releases.lua
var releasesLua string

//go:embed scripts/inspect.lua
var inspectLua string

//go:embed scripts/marker.lua
var markerLua string

//go:embed scripts/fair.lua
var fairLua string

//go:embed scripts/fenced_acquire.lua
var fencedAcquireLua string

//go:embed scripts/fenced_acquires.lua
var fencedAcquiresLua string

//go:embed scripts/fenced_raise.lua
var fencedRaiseLua string

//go:embed scripts/fenced_extend.lua
var fencedExtendLua string

//go:embed scripts/fenced_repair.lua
var fencedRepairLua string

//go:embed scripts/rw.lua
var rwLua string

//go:embed scripts/write.lua
var writeLua string

//go:embed scripts/read.lua
var readLua string

//go:embed scripts/write_extend.lua
var writeExtendLua string

//go:embed scripts/read_extend.lua
var readExtendLua string

//go:embed scripts/write_repair.lua
var writeRepairLua string

//go:embed scripts/read_repair.lua
var readRepairLua string

//go:embed scripts/rw_release.lua
var rwReleaseLua string

//go:embed scripts/multi.lua
var multiLua string

//go:embed scripts/multi_ask.lua
var multiAskLua string

//go:embed scripts/multi_extend.lua
var multiExtendLua string

//go:embed scripts/multi_repair.lua
var multiRepairLua string

//go:embed scripts/multi_raise.lua
var multiRaiseLua string

//go:embed scripts/multi_release.lua
var multiReleaseLua string

//go:embed scripts/permits.lua
var permitsLua string

//go:embed scripts/permit.lua
var permitLua string

//go:embed scripts/permit_move.lua
var permitMoveLua string

//go:embed scripts/permit_extend.lua
var permitExtendLua string

//go:embed scripts/permit_release.lua
var permitReleaseLua string

//go:embed scripts/permit_resize.lua
var permitResizeLua string

//go:embed scripts/permit_raise.lua
var permitRaiseLua string

//go:embed scripts/latch.lua
var latchLua string

//go:embed scripts/latch_read.lua
var latchReadLua string

//go:embed scripts/latch_arrive.lua
var latchArriveLua string

//go:embed scripts/latch_write.lua
var latchWriteLua string

//go:embed scripts/proclaim.lua
var proclaimLua string

//go:embed scripts/leader.lua
var leaderLua string

//go:embed scripts/counter.lua
var counterLua string

//go:embed scripts/release_short.lua
var releaseShortLua string

//go:embed scripts/releases_short.lua
var releasesShortLua string

//go:embed scripts/fair_short.lua
var fairShortLua string

//go:embed scripts/write_short.lua
var writeShortLua string

//go:embed scripts/read_short.lua
var readShortLua string

//go:embed scripts/rw_release_short.lua
var rwReleaseShortLua string

//go:embed scripts/permit_short.lua
var permitShortLua string

//go:embed scripts/permit_release_short.lua
var permitReleaseShortLua string

//go:embed scripts/multi_ask_short.lua
var multiAskShortLua string

//go:embed scripts/multi_release_short.lua
var multiReleaseShortLua string

//go:embed scripts/each.lua
var eachLua string

//go:embed scripts/failure.lua
var failureLua string

//go:embed scripts/fold.lua
var foldLua string

// scriptReleases is only how the transport sends several releases at once.
var scriptReleases = &Script{"releases", releasesShortLua + counterLua + queueLua + failureLua + releasesLua, "5d4c512914bf1c35329e06deb349b13381dc5e42"}

// These are how the transport sends several calls of one script at once.
var (
	scriptFencedAcquires = &Script{"fenced_acquires", counterLua + failureLua + fencedAcquiresLua, "3907c33e480dc4469b7a2a1fbcd4314d43aa9854"}
	scriptFairs          = &Script{"fairs", counterLua + queueLua + failureLua + eachLua + fairShortLua + fairLua + foldLua, "f0b8fb5b0b69ab4dc3a908ac91ee2e4e51516a2f"}
	scriptWrites         = &Script{"writes", counterLua + queueLua + rwLua + failureLua + eachLua + writeShortLua + writeLua + foldLua, "16abd8a67a24d9d4a819196ebbda38f456f356ef"}
	scriptReads          = &Script{"reads", counterLua + queueLua + rwLua + failureLua + eachLua + readShortLua + readLua + foldLua, "8333bc1ad7e1070c71a522e78c3e26b875d1e785"}
	scriptRWReleases     = &Script{"rw_releases", counterLua + queueLua + rwLua + failureLua + eachLua + rwReleaseShortLua + rwReleaseLua + foldLua, "080f6beef0fed2b76f9cf4d36a675a87828d7f6d"}
	scriptPermitTakes    = &Script{"permit_takes", counterLua + queueLua + permitsLua + failureLua + eachLua + permitShortLua + permitLua + foldLua, "11f6e661c866c4f8324156b08037b540276c46c3"}
	scriptPermitReleases = &Script{"permit_releases", counterLua + queueLua + permitsLua + failureLua + eachLua + permitReleaseShortLua + permitReleaseLua + foldLua, "81760dcd9d34e9a549dfaf68db12ec6b5c2888c0"}
)

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", counterLua + queueLua + askLua, "237640fd256d8e151a1ad87765b6f2346b0b32ee"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", releaseShortLua + counterLua + queueLua + releaseLua, "441b376b3a301cce2891c11923a8e5838466d7e8"}
	ScriptInspect       = &Script{"inspect", counterLua + queueLua + inspectLua, "0fa90ce95374bfba27983a187e59c565bec312e9"}
	ScriptFair          = &Script{"fair", fairShortLua + counterLua + queueLua + fairLua, "2664e8ba3ab7020e3a3e8683b3f0aaec4742f556"}
	ScriptFencedAcquire = &Script{"fenced_acquire", counterLua + fencedAcquireLua, "39c901b32604673804da89c0e749e1e8d9c1ded2"}
	ScriptFencedRaise   = &Script{"fenced_raise", counterLua + fencedRaiseLua, "ab5d70089c21fae990fe2de255c54d469fdf4f7e"}
	ScriptFencedExtend  = &Script{"fenced_extend", counterLua + fencedExtendLua, "3fdd5aed528941658b79896b7153290a23c8bde2"}
	ScriptFencedRepair  = &Script{"fenced_repair", counterLua + fencedRepairLua, "bbea7e589d6e33a5c1888203e76a23f7848fc90e"}
	ScriptWrite         = &Script{"write", writeShortLua + counterLua + queueLua + rwLua + writeLua, "5f26e9a12844a2f8fd87b85a80109e21b6e953de"}
	ScriptRead          = &Script{"read", readShortLua + counterLua + queueLua + rwLua + readLua, "bd20f67bd6bf1f34e149821276e76ecb19a94804"}
	ScriptWriteExtend   = &Script{"write_extend", counterLua + queueLua + rwLua + writeExtendLua, "3dfb6d15deddf8bee2172c26787c7d82f09e1bbe"}
	ScriptReadExtend    = &Script{"read_extend", counterLua + queueLua + rwLua + readExtendLua, "075bc094df945a94e4af3772ab22b936d37ef8bc"}
	ScriptWriteRepair   = &Script{"write_repair", counterLua + queueLua + rwLua + writeRepairLua, "f0dbd5bf1a8ef2e7b7441de075ccb3e32d6465b0"}
	ScriptReadRepair    = &Script{"read_repair", counterLua + queueLua + rwLua + readRepairLua, "ec565c2f773f0f2ef83d19a91db0f9f8adf4bfbd"}
	ScriptRWRelease     = &Script{"rw_release", rwReleaseShortLua + counterLua + queueLua + rwLua + rwReleaseLua, "201ac3397bee27c6f67dfa6096ae8f1952f56f2b"}
	ScriptMultiAsk      = &Script{"multi_ask", multiAskShortLua + counterLua + queueLua + multiLua + multiAskLua, "9768b4c3f12b81b23e09b03007dc745cd38822f6"}
	ScriptMultiExtend   = &Script{"multi_extend", counterLua + queueLua + multiLua + multiExtendLua, "8d1f145a6a86609d3b2dbbba935bd5141d78be23"}
	ScriptMultiRepair   = &Script{"multi_repair", counterLua + queueLua + multiLua + multiRepairLua, "17af68b0f88a9a982f4819a2d81a2f5f5698a6e6"}
	ScriptMultiRaise    = &Script{"multi_raise", counterLua + queueLua + multiLua + multiRaiseLua, "b8a2318cc93410e8d9cb3361f219cd01b2189afe"}
	ScriptMultiRelease  = &Script{"multi_release", multiReleaseShortLua + counterLua + queueLua + multiLua + multiReleaseLua, "e49229857d9673d00424c1512f39f5f322ade337"}
	ScriptPermit        = &Script{"permit", permitShortLua + counterLua + queueLua + permitsLua + permitLua, "c5653ab8934b67fc8b59366180c4dee14715e1ae"}
	ScriptPermitMove    = &Script{"permit_move", counterLua + queueLua + permitsLua + permitMoveLua, "92a8c5ec56b667679675aaeae69cc49c7374e9b5"}
	ScriptPermitExtend  = &Script{"permit_extend", counterLua + queueLua + permitsLua + permitExtendLua, "23a82c3a40022e843cca52826156c6e9aa7ca82f"}
	ScriptPermitRelease = &Script{"permit_release", permitReleaseShortLua + counterLua + queueLua + permitsLua + permitReleaseLua, "6570e35508d51aa85ea2891826d8fa07353d1f64"}
	ScriptPermitResize  = &Script{"permit_resize", counterLua + queueLua + permitsLua + permitResizeLua, "f967e58582707b9b37673c952369f1bfb5dff70e"}
	ScriptPermitRaise   = &Script{"permit_raise", counterLua + queueLua + permitsLua + permitRaiseLua, "4b826b0257c50dc9ba319298f42e2fee7aa5feaf"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchLua + latchArriveLua, "500e03d7122ab56eb7d42bf2f96819ce260d9fef"}
	ScriptLatchRead     = &Script{"latch_read", latchLua + latchReadLua, "fac27c10509c1fc4e56d57c24d83e468994d492a"}
	ScriptLatchWrite    = &Script{"latch_write", latchLua + latchWriteLua, "4b46762042a42ddb11aa5ad4d60256b152f8cc79"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "6651c7d7c00cee72a2b3325bbcd8696b59c87808"}
)
