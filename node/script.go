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
	ScriptLatchArrive, ScriptLatchWrite,
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
var scriptReleases = &Script{"releases", counterLua + queueLua + failureLua + releasesLua, "89a7bde5c382cb6ff0901f38574de48633b5275d"}

// These are how the transport sends several calls of one script at once.
var (
	scriptFencedAcquires = &Script{"fenced_acquires", counterLua + failureLua + fencedAcquiresLua, "3907c33e480dc4469b7a2a1fbcd4314d43aa9854"}
	scriptFairs          = &Script{"fairs", counterLua + queueLua + failureLua + eachLua + fairShortLua + fairLua + foldLua, "74a1d950e2d51fd3feda029072a0764edd082e3e"}
	scriptWrites         = &Script{"writes", counterLua + queueLua + rwLua + failureLua + eachLua + writeShortLua + writeLua + foldLua, "7320061310105b7c41d90da77cd1454febc52be9"}
	scriptReads          = &Script{"reads", counterLua + queueLua + rwLua + failureLua + eachLua + readShortLua + readLua + foldLua, "8446b2ea4355caab8673f64d0571f656f8a542da"}
	scriptRWReleases     = &Script{"rw_releases", counterLua + queueLua + rwLua + failureLua + eachLua + rwReleaseShortLua + rwReleaseLua + foldLua, "183927df6d6a4324c590b1e3c8aa389132622c07"}
	scriptPermitTakes    = &Script{"permit_takes", counterLua + queueLua + permitsLua + failureLua + eachLua + permitShortLua + permitLua + foldLua, "c826d12c514296f5b8ae9c3982bd3d73d01c8339"}
	scriptPermitReleases = &Script{"permit_releases", counterLua + queueLua + permitsLua + failureLua + eachLua + permitReleaseShortLua + permitReleaseLua + foldLua, "80a2d20fe720b5e917fd2a6d8a344d91084641f0"}
)

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", counterLua + queueLua + askLua, "9c850211451e300bb92fb45d07f82823c260c164"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", releaseShortLua + counterLua + queueLua + releaseLua, "0bbbe35a5d7f917cef8955b25113a38b1616dd24"}
	ScriptInspect       = &Script{"inspect", counterLua + queueLua + inspectLua, "ff3ed75eedd86923e31138f7d448ba2f43ac7e68"}
	ScriptFair          = &Script{"fair", fairShortLua + counterLua + queueLua + fairLua, "3bcb74c78039e223f790b41ae4df037fab31fbc6"}
	ScriptFencedAcquire = &Script{"fenced_acquire", counterLua + fencedAcquireLua, "39c901b32604673804da89c0e749e1e8d9c1ded2"}
	ScriptFencedRaise   = &Script{"fenced_raise", counterLua + fencedRaiseLua, "ab5d70089c21fae990fe2de255c54d469fdf4f7e"}
	ScriptFencedExtend  = &Script{"fenced_extend", counterLua + fencedExtendLua, "3fdd5aed528941658b79896b7153290a23c8bde2"}
	ScriptFencedRepair  = &Script{"fenced_repair", counterLua + fencedRepairLua, "bbea7e589d6e33a5c1888203e76a23f7848fc90e"}
	ScriptWrite         = &Script{"write", writeShortLua + counterLua + queueLua + rwLua + writeLua, "433168048353fc1e0123ac9750b97111662079b7"}
	ScriptRead          = &Script{"read", readShortLua + counterLua + queueLua + rwLua + readLua, "ff3301c800eb38c8437a49b55b0f118d821a30f3"}
	ScriptWriteExtend   = &Script{"write_extend", counterLua + queueLua + rwLua + writeExtendLua, "ab27072b03203f5562fc11641ea9589271cdcf7f"}
	ScriptReadExtend    = &Script{"read_extend", counterLua + queueLua + rwLua + readExtendLua, "d6b1903768086d0c1ab3c33cfe7a7db4e6d47aad"}
	ScriptWriteRepair   = &Script{"write_repair", counterLua + queueLua + rwLua + writeRepairLua, "38c5079ceef82eb8dbfa93c6446a29121ef6527f"}
	ScriptReadRepair    = &Script{"read_repair", counterLua + queueLua + rwLua + readRepairLua, "c93542130aa03aec2a5e64f62ac2f7dd7193dcc3"}
	ScriptRWRelease     = &Script{"rw_release", rwReleaseShortLua + counterLua + queueLua + rwLua + rwReleaseLua, "8a91b17b0c5abaaac672a9c3f23054b0627d2218"}
	ScriptMultiAsk      = &Script{"multi_ask", multiAskShortLua + counterLua + queueLua + multiLua + multiAskLua, "9744876e9cd3317e0a58610314d54a24687a75fb"}
	ScriptMultiExtend   = &Script{"multi_extend", counterLua + queueLua + multiLua + multiExtendLua, "64195f1095cc2a4e223a3d86c768f172fde4e9ec"}
	ScriptMultiRepair   = &Script{"multi_repair", counterLua + queueLua + multiLua + multiRepairLua, "3a2b9861333398e602c824845103b2febe497131"}
	ScriptMultiRaise    = &Script{"multi_raise", counterLua + queueLua + multiLua + multiRaiseLua, "a47b90688102b761d1c75beb56f2470e9bba4f95"}
	ScriptMultiRelease  = &Script{"multi_release", multiReleaseShortLua + counterLua + queueLua + multiLua + multiReleaseLua, "49e6aa176e318e54ceccb673bcfefa652dabdecf"}
	ScriptPermit        = &Script{"permit", permitShortLua + counterLua + queueLua + permitsLua + permitLua, "3e6724d6295794386aa9130529c434b662fde9d8"}
	ScriptPermitMove    = &Script{"permit_move", counterLua + queueLua + permitsLua + permitMoveLua, "8496bddbf45cc8268aee67ed2b5b8595e5365b89"}
	ScriptPermitExtend  = &Script{"permit_extend", counterLua + queueLua + permitsLua + permitExtendLua, "1f0230324e92a49b78faf8523ea1d8a99d0a62f4"}
	ScriptPermitRelease = &Script{"permit_release", permitReleaseShortLua + counterLua + queueLua + permitsLua + permitReleaseLua, "33a1e95e28859e28e34a12f57699ca8345d57197"}
	ScriptPermitResize  = &Script{"permit_resize", counterLua + queueLua + permitsLua + permitResizeLua, "4f97a36c6715d8a77ba6bdbf5da62369ab9ce6e7"}
	ScriptPermitRaise   = &Script{"permit_raise", counterLua + queueLua + permitsLua + permitRaiseLua, "a78a18bacfd7fc1bb1a6775a50841f79606fc830"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchArriveLua, "b8c8cbc03a1334a5c6d7d93a3dc6b4242f291333"}
	ScriptLatchWrite    = &Script{"latch_write", latchWriteLua, "d2e624c120d9f26dec195941c2656341cddf5e89"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "6651c7d7c00cee72a2b3325bbcd8696b59c87808"}
)
