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
var scriptReleases = &Script{"releases", releasesShortLua + counterLua + queueLua + failureLua + releasesLua, "bcbeb7fe81e1318e874164393bca6dea23d466d2"}

// These are how the transport sends several calls of one script at once.
var (
	scriptFencedAcquires = &Script{"fenced_acquires", counterLua + failureLua + fencedAcquiresLua, "3907c33e480dc4469b7a2a1fbcd4314d43aa9854"}
	scriptFairs          = &Script{"fairs", counterLua + queueLua + failureLua + eachLua + fairShortLua + fairLua + foldLua, "1cc5d4e3d0f555cc96cbdbd57940a5e8b1c19f09"}
	scriptWrites         = &Script{"writes", counterLua + queueLua + rwLua + failureLua + eachLua + writeShortLua + writeLua + foldLua, "b97c78dcd884334381bc7a7d94677e921173406d"}
	scriptReads          = &Script{"reads", counterLua + queueLua + rwLua + failureLua + eachLua + readShortLua + readLua + foldLua, "d87a2670e7ac4fc9e088e1f3f14209af95a0e0de"}
	scriptRWReleases     = &Script{"rw_releases", counterLua + queueLua + rwLua + failureLua + eachLua + rwReleaseShortLua + rwReleaseLua + foldLua, "7b157279d21df6dfb74ac16e237e449700db739f"}
	scriptPermitTakes    = &Script{"permit_takes", counterLua + queueLua + permitsLua + failureLua + eachLua + permitShortLua + permitLua + foldLua, "ad6b42788474ff774627ba3840e6758c5b857916"}
	scriptPermitReleases = &Script{"permit_releases", counterLua + queueLua + permitsLua + failureLua + eachLua + permitReleaseShortLua + permitReleaseLua + foldLua, "7416e09f51b352dc22ee762cb18627f46346aeca"}
)

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", counterLua + queueLua + askLua, "9afe51efee4e7e2a9e96daf4752ed47caf63b904"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", releaseShortLua + counterLua + queueLua + releaseLua, "453bd2c268e893b2cd8c10e3a5c91e25468a9b2e"}
	ScriptInspect       = &Script{"inspect", counterLua + queueLua + inspectLua, "744cc41c5052767de96482cd1c9bf7198def8540"}
	ScriptFair          = &Script{"fair", fairShortLua + counterLua + queueLua + fairLua, "71f1edeef3561e7c12cce77ac20eb8a72158ed0b"}
	ScriptFencedAcquire = &Script{"fenced_acquire", counterLua + fencedAcquireLua, "39c901b32604673804da89c0e749e1e8d9c1ded2"}
	ScriptFencedRaise   = &Script{"fenced_raise", counterLua + fencedRaiseLua, "ab5d70089c21fae990fe2de255c54d469fdf4f7e"}
	ScriptFencedExtend  = &Script{"fenced_extend", counterLua + fencedExtendLua, "3fdd5aed528941658b79896b7153290a23c8bde2"}
	ScriptFencedRepair  = &Script{"fenced_repair", counterLua + fencedRepairLua, "bbea7e589d6e33a5c1888203e76a23f7848fc90e"}
	ScriptWrite         = &Script{"write", writeShortLua + counterLua + queueLua + rwLua + writeLua, "1a339cc655e8132d6d589d61070b5301ce43d611"}
	ScriptRead          = &Script{"read", readShortLua + counterLua + queueLua + rwLua + readLua, "34a83ac3059abe9e152394ecb23f9f6356096eb1"}
	ScriptWriteExtend   = &Script{"write_extend", counterLua + queueLua + rwLua + writeExtendLua, "7009663d792a36087fac627c7c47f5e457196b6c"}
	ScriptReadExtend    = &Script{"read_extend", counterLua + queueLua + rwLua + readExtendLua, "f76e807077b4a4b630aef26fd3c85035c9df128c"}
	ScriptWriteRepair   = &Script{"write_repair", counterLua + queueLua + rwLua + writeRepairLua, "435c4585541a8c277eadf71687450211517aef91"}
	ScriptReadRepair    = &Script{"read_repair", counterLua + queueLua + rwLua + readRepairLua, "d8feae056e5dbb3e798fdcc8bbe71ab9e662cc00"}
	ScriptRWRelease     = &Script{"rw_release", rwReleaseShortLua + counterLua + queueLua + rwLua + rwReleaseLua, "e49c1c9d27f46f604ccc8ade50c586b03761dacc"}
	ScriptMultiAsk      = &Script{"multi_ask", multiAskShortLua + counterLua + queueLua + multiLua + multiAskLua, "4b11a122c91af89f02b98da1275f657ffda05adc"}
	ScriptMultiExtend   = &Script{"multi_extend", counterLua + queueLua + multiLua + multiExtendLua, "3a8b2b1dc34c01609372633e65c0f8d1907aa2ce"}
	ScriptMultiRepair   = &Script{"multi_repair", counterLua + queueLua + multiLua + multiRepairLua, "e8cb227285f768190c85afd93003377baed194be"}
	ScriptMultiRaise    = &Script{"multi_raise", counterLua + queueLua + multiLua + multiRaiseLua, "983e618208cb42244767395ef6ea3f542a513dc7"}
	ScriptMultiRelease  = &Script{"multi_release", multiReleaseShortLua + counterLua + queueLua + multiLua + multiReleaseLua, "f913b075002368884170d450b488af219959f17d"}
	ScriptPermit        = &Script{"permit", permitShortLua + counterLua + queueLua + permitsLua + permitLua, "5d4db03580072676df523a73796c48e446afd014"}
	ScriptPermitMove    = &Script{"permit_move", counterLua + queueLua + permitsLua + permitMoveLua, "c1669e05d68f3d463872964ff2845dca1c938f87"}
	ScriptPermitExtend  = &Script{"permit_extend", counterLua + queueLua + permitsLua + permitExtendLua, "5ff5190b0493eaa1c6f4e6fc13559d4a4bc7c2ba"}
	ScriptPermitRelease = &Script{"permit_release", permitReleaseShortLua + counterLua + queueLua + permitsLua + permitReleaseLua, "b8c9a49bba90a4c6fe7f66f33357596686d1e8dd"}
	ScriptPermitResize  = &Script{"permit_resize", counterLua + queueLua + permitsLua + permitResizeLua, "2c16424339a7313b3c241719d2a366e944ffe3de"}
	ScriptPermitRaise   = &Script{"permit_raise", counterLua + queueLua + permitsLua + permitRaiseLua, "dd13013f039c31ddfd3d3958f10ef248d01c6666"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchLua + latchArriveLua, "500e03d7122ab56eb7d42bf2f96819ce260d9fef"}
	ScriptLatchRead     = &Script{"latch_read", latchLua + latchReadLua, "fac27c10509c1fc4e56d57c24d83e468994d492a"}
	ScriptLatchWrite    = &Script{"latch_write", latchLua + latchWriteLua, "4b46762042a42ddb11aa5ad4d60256b152f8cc79"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "6651c7d7c00cee72a2b3325bbcd8696b59c87808"}
)
