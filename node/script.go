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
var scriptReleases = &Script{"releases", releasesShortLua + counterLua + queueLua + failureLua + releasesLua, "9ca9287e71c9934685923f788ad2aa6dc48a5b95"}

// These are how the transport sends several calls of one script at once.
var (
	scriptFencedAcquires = &Script{"fenced_acquires", counterLua + failureLua + fencedAcquiresLua, "3907c33e480dc4469b7a2a1fbcd4314d43aa9854"}
	scriptFairs          = &Script{"fairs", counterLua + queueLua + failureLua + eachLua + fairShortLua + fairLua + foldLua, "8922ef0ed8db7c1304a92a6188358a1542a3bb20"}
	scriptWrites         = &Script{"writes", counterLua + queueLua + rwLua + failureLua + eachLua + writeShortLua + writeLua + foldLua, "3bfbfbaa82dcf4f64b20921934391c87c51fdb72"}
	scriptReads          = &Script{"reads", counterLua + queueLua + rwLua + failureLua + eachLua + readShortLua + readLua + foldLua, "daef8f0034991ac55548e37e77b6e383eb184988"}
	scriptRWReleases     = &Script{"rw_releases", counterLua + queueLua + rwLua + failureLua + eachLua + rwReleaseShortLua + rwReleaseLua + foldLua, "796b471e30c56e345499f65e79dc9194750e965d"}
	scriptPermitTakes    = &Script{"permit_takes", counterLua + queueLua + permitsLua + failureLua + eachLua + permitShortLua + permitLua + foldLua, "df87b14c14052a1b6d7b04f0777a47474a7ed00f"}
	scriptPermitReleases = &Script{"permit_releases", counterLua + queueLua + permitsLua + failureLua + eachLua + permitReleaseShortLua + permitReleaseLua + foldLua, "a425000048c89f1d2be606e9f7137bb63f8536c9"}
)

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", counterLua + queueLua + askLua, "2a03d3550e7ed9aafb2bf93aeabea023f75f431c"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", releaseShortLua + counterLua + queueLua + releaseLua, "99a0b4070d53eecd77b64f389b99a457ae8bff5f"}
	ScriptInspect       = &Script{"inspect", counterLua + queueLua + inspectLua, "980832bad6b68cf4e9e370acc237158b7ef1fac6"}
	ScriptFair          = &Script{"fair", fairShortLua + counterLua + queueLua + fairLua, "bce638ac187e31cfd460d27b0554b986d2f41a4d"}
	ScriptFencedAcquire = &Script{"fenced_acquire", counterLua + fencedAcquireLua, "39c901b32604673804da89c0e749e1e8d9c1ded2"}
	ScriptFencedRaise   = &Script{"fenced_raise", counterLua + fencedRaiseLua, "ab5d70089c21fae990fe2de255c54d469fdf4f7e"}
	ScriptFencedExtend  = &Script{"fenced_extend", counterLua + fencedExtendLua, "3fdd5aed528941658b79896b7153290a23c8bde2"}
	ScriptFencedRepair  = &Script{"fenced_repair", counterLua + fencedRepairLua, "bbea7e589d6e33a5c1888203e76a23f7848fc90e"}
	ScriptWrite         = &Script{"write", writeShortLua + counterLua + queueLua + rwLua + writeLua, "0ba2c575bfb5f45689ad679fbc0e2533759af880"}
	ScriptRead          = &Script{"read", readShortLua + counterLua + queueLua + rwLua + readLua, "0d633991c318ef72fef4deda70372087b0dfd46b"}
	ScriptWriteExtend   = &Script{"write_extend", counterLua + queueLua + rwLua + writeExtendLua, "f16cc7959ec190808f382b380a302e83524c63a0"}
	ScriptReadExtend    = &Script{"read_extend", counterLua + queueLua + rwLua + readExtendLua, "2480cb8e210d25e7b55aa3dd596764ea276b5507"}
	ScriptWriteRepair   = &Script{"write_repair", counterLua + queueLua + rwLua + writeRepairLua, "d02d2827435bdd53fa0d95a2112096be42617392"}
	ScriptReadRepair    = &Script{"read_repair", counterLua + queueLua + rwLua + readRepairLua, "b671efb1643112a0889d3625711fdd109bbd135d"}
	ScriptRWRelease     = &Script{"rw_release", rwReleaseShortLua + counterLua + queueLua + rwLua + rwReleaseLua, "5fd34f2cc63b0352a0cad0c30fc870a06b48a734"}
	ScriptMultiAsk      = &Script{"multi_ask", multiAskShortLua + counterLua + queueLua + multiLua + multiAskLua, "5d769529a1af91ec5fab159507f5aeb255ec44c2"}
	ScriptMultiExtend   = &Script{"multi_extend", counterLua + queueLua + multiLua + multiExtendLua, "0bd42e55dad536457e410e5e56d259f516f6b693"}
	ScriptMultiRepair   = &Script{"multi_repair", counterLua + queueLua + multiLua + multiRepairLua, "24ca054edae4af52a7ea4379c35b3d7297ec0fea"}
	ScriptMultiRaise    = &Script{"multi_raise", counterLua + queueLua + multiLua + multiRaiseLua, "13b3cc5e58df8bfc748810e5c765321b36a34a12"}
	ScriptMultiRelease  = &Script{"multi_release", multiReleaseShortLua + counterLua + queueLua + multiLua + multiReleaseLua, "e0cb570cbfb9937b1a3700d00758e72e875a6945"}
	ScriptPermit        = &Script{"permit", permitShortLua + counterLua + queueLua + permitsLua + permitLua, "816b84ea5782a823a2ecc173b0dbfadf9a405ffd"}
	ScriptPermitMove    = &Script{"permit_move", counterLua + queueLua + permitsLua + permitMoveLua, "3debf141729fdd449779ac403b7bb253ddf96294"}
	ScriptPermitExtend  = &Script{"permit_extend", counterLua + queueLua + permitsLua + permitExtendLua, "c420a371fe4a54e039f2e600efc2d7f30e939261"}
	ScriptPermitRelease = &Script{"permit_release", permitReleaseShortLua + counterLua + queueLua + permitsLua + permitReleaseLua, "77760b375ee4069ddb230a1bb65fd6745a8dfee8"}
	ScriptPermitResize  = &Script{"permit_resize", counterLua + queueLua + permitsLua + permitResizeLua, "d5faecbd39c776683ac235b5400264b29f68a203"}
	ScriptPermitRaise   = &Script{"permit_raise", counterLua + queueLua + permitsLua + permitRaiseLua, "595bca46cb1de0c2d19629d6a7d14d3a279cd481"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchLua + latchArriveLua, "500e03d7122ab56eb7d42bf2f96819ce260d9fef"}
	ScriptLatchRead     = &Script{"latch_read", latchLua + latchReadLua, "fac27c10509c1fc4e56d57c24d83e468994d492a"}
	ScriptLatchWrite    = &Script{"latch_write", latchLua + latchWriteLua, "4b46762042a42ddb11aa5ad4d60256b152f8cc79"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "6651c7d7c00cee72a2b3325bbcd8696b59c87808"}
)
