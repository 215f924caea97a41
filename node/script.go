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
	ScriptLatchArrive, ScriptLatchCount, ScriptLatchRead, ScriptLatchWrite,
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

//go:embed scripts/latch_count.lua
var latchCountLua string

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
var scriptReleases = &Script{"releases", releasesShortLua + counterLua + queueLua + failureLua + releasesLua, "02c4198e5c9c62d71cb42717c14f29b45ac1a7b5"}

// These are how the transport sends several calls of one script at once.
var (
	scriptFencedAcquires = &Script{"fenced_acquires", counterLua + failureLua + fencedAcquiresLua, "2c05b83607b185ba2e26f22a92d3768b99d9ac3a"}
	scriptFairs          = &Script{"fairs", counterLua + queueLua + failureLua + eachLua + fairShortLua + fairLua + foldLua, "be1e301dac695815a13d4f1c5d3d141338dda9c8"}
	scriptWrites         = &Script{"writes", counterLua + queueLua + rwLua + failureLua + eachLua + writeShortLua + writeLua + foldLua, "1d767efea15d106fbd73816e29e99c4020d60b4d"}
	scriptReads          = &Script{"reads", counterLua + queueLua + rwLua + failureLua + eachLua + readShortLua + readLua + foldLua, "d42897b1e48c1a3d48020694e0835f00dba557fc"}
	scriptRWReleases     = &Script{"rw_releases", counterLua + queueLua + rwLua + failureLua + eachLua + rwReleaseShortLua + rwReleaseLua + foldLua, "7eded7e57addd7a038f7eb97ee99673ca1b15365"}
	scriptPermitTakes    = &Script{"permit_takes", counterLua + queueLua + permitsLua + failureLua + eachLua + permitShortLua + permitLua + foldLua, "781709b34237afe39c4b3353a594e0947d752c0b"}
	scriptPermitReleases = &Script{"permit_releases", counterLua + queueLua + permitsLua + failureLua + eachLua + permitReleaseShortLua + permitReleaseLua + foldLua, "81f845a711835cdd40ae2795d7b9b7560448bab0"}
)

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", counterLua + queueLua + askLua, "b48240c05663b3cf060597967fba93daca201df9"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", releaseShortLua + counterLua + queueLua + releaseLua, "bd6b784b58072412f6ab7fcd087b58e14a59a52b"}
	ScriptInspect       = &Script{"inspect", counterLua + queueLua + inspectLua, "fb9e961564936203d972029331f79b9aa21016ea"}
	ScriptFair          = &Script{"fair", fairShortLua + counterLua + queueLua + fairLua, "c0b1a8b96787894a711ce79f3111a97074cee269"}
	ScriptFencedAcquire = &Script{"fenced_acquire", counterLua + fencedAcquireLua, "c2c839775aa4478fb6b1f2bc07b9531687eaf8bf"}
	ScriptFencedRaise   = &Script{"fenced_raise", counterLua + fencedRaiseLua, "ab4c805d040e5f790974fc8cebe42230a2ffcfa9"}
	ScriptFencedExtend  = &Script{"fenced_extend", counterLua + fencedExtendLua, "bc1b7c14e342e3d920419d73737c911421bd365d"}
	ScriptFencedRepair  = &Script{"fenced_repair", counterLua + fencedRepairLua, "ef8ded555ff639e67b053a5a49b8ff258407e738"}
	ScriptWrite         = &Script{"write", writeShortLua + counterLua + queueLua + rwLua + writeLua, "e5faab5895188ab1ff3421db6e6d7c216e7ce505"}
	ScriptRead          = &Script{"read", readShortLua + counterLua + queueLua + rwLua + readLua, "8d1e8fdffd1c16090ff566690912695a48a889cc"}
	ScriptWriteExtend   = &Script{"write_extend", counterLua + queueLua + rwLua + writeExtendLua, "391da7d46c1e8c5b93ff3ed8a7a28a2b7e714d24"}
	ScriptReadExtend    = &Script{"read_extend", counterLua + queueLua + rwLua + readExtendLua, "ba0f2dbf8b39a52efb697e248b907cbbd13c3e98"}
	ScriptWriteRepair   = &Script{"write_repair", counterLua + queueLua + rwLua + writeRepairLua, "a19dd2e329592604090ca11d6655d70266ad8722"}
	ScriptReadRepair    = &Script{"read_repair", counterLua + queueLua + rwLua + readRepairLua, "30fe72ebe75265cc1ee1416a2f3b9176177fa6e4"}
	ScriptRWRelease     = &Script{"rw_release", rwReleaseShortLua + counterLua + queueLua + rwLua + rwReleaseLua, "205dfb842a40752775b5762eb549d0e392bd64ac"}
	ScriptMultiAsk      = &Script{"multi_ask", multiAskShortLua + counterLua + queueLua + multiLua + multiAskLua, "f21e7930a779408fd56438f143ebc9ce06a0e062"}
	ScriptMultiExtend   = &Script{"multi_extend", counterLua + queueLua + multiLua + multiExtendLua, "c4cca32f7b78a85c3e708457029edc9c7ea78e14"}
	ScriptMultiRepair   = &Script{"multi_repair", counterLua + queueLua + multiLua + multiRepairLua, "f2c4a924d9201b3322721f3cdd57c9da73640e03"}
	ScriptMultiRaise    = &Script{"multi_raise", counterLua + queueLua + multiLua + multiRaiseLua, "20716b556ef78e206e155a49390449fde1abfb8b"}
	ScriptMultiRelease  = &Script{"multi_release", multiReleaseShortLua + counterLua + queueLua + multiLua + multiReleaseLua, "611705a98bd56ec7abc39bd4c07b4cb16ce73965"}
	ScriptPermit        = &Script{"permit", permitShortLua + counterLua + queueLua + permitsLua + permitLua, "91c10319e9a8fc0ce3a76d8e994f0a952512295b"}
	ScriptPermitMove    = &Script{"permit_move", counterLua + queueLua + permitsLua + permitMoveLua, "eb63b65dfa653573e1b4d495ac539635c7b86fef"}
	ScriptPermitExtend  = &Script{"permit_extend", counterLua + queueLua + permitsLua + permitExtendLua, "fa62fe874c2054d37580effad8b235a08b8474e5"}
	ScriptPermitRelease = &Script{"permit_release", permitReleaseShortLua + counterLua + queueLua + permitsLua + permitReleaseLua, "5292a9baeba5143df265cf980d21bc2a4f5193dd"}
	ScriptPermitResize  = &Script{"permit_resize", counterLua + queueLua + permitsLua + permitResizeLua, "fb9d83bd20d16db1f0592d6874316d602e125db9"}
	ScriptPermitRaise   = &Script{"permit_raise", counterLua + queueLua + permitsLua + permitRaiseLua, "369b226d631a52571dbb6b7a80b1c943fb799b8c"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchLua + latchArriveLua, "e318d3a6006d810d6862f0e157b8d36f8f168e32"}
	ScriptLatchCount    = &Script{"latch_count", latchLua + latchCountLua, "15eb906d773c073fbd10501b5528ad2db1ca90c5"}
	ScriptLatchRead     = &Script{"latch_read", latchLua + latchReadLua, "e0ac73ccd27b64971fb274c883085f31cf16c756"}
	ScriptLatchWrite    = &Script{"latch_write", latchLua + latchWriteLua, "f77f07eee82f76ba6fd8ce8fde264b8437d8764b"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "2014daf4593d9efe9585cadbabb1f98eebd932ac"}
)
