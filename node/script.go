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
	ScriptPermit, ScriptPermitMove, ScriptPermitExtend, ScriptPermitRelease, ScriptPermitResize,
	ScriptLatchArrive, ScriptLatchWrite,
	ScriptProclaim, ScriptLeader,
	ScriptFair, ScriptFencedAcquire, ScriptFencedRaise, ScriptFencedExtend, ScriptFencedRepair,
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

//go:embed scripts/latch_arrive.lua
var latchArriveLua string

//go:embed scripts/latch_write.lua
var latchWriteLua string

//go:embed scripts/proclaim.lua
var proclaimLua string

//go:embed scripts/leader.lua
var leaderLua string

// scriptReleases is only how the transport sends several releases at once.
var scriptReleases = &Script{"releases", queueLua + releasesLua, "fdd2d4f57d06363bbedcf3fa01218cf58b0ffa4f"}

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptAsk           = &Script{"ask", queueLua + askLua, "a9f91b979fad71b883400dffd1e189cff78afb0c"}
	ScriptExtend        = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease       = &Script{"release", queueLua + releaseLua, "9946f5d63121a73f84ca8a06e27034e4d61cc41c"}
	ScriptInspect       = &Script{"inspect", queueLua + inspectLua, "c700253a27d3d2f533291bbb07f9a1026b6666f1"}
	ScriptFair          = &Script{"fair", queueLua + fairLua, "ef9d597e0ce2049c4bf94493b0335610a0e1fd99"}
	ScriptFencedAcquire = &Script{"fenced_acquire", queueLua + fencedAcquireLua, "621f4c909a259d94e0e6fd6251d154effe8c3179"}
	ScriptFencedRaise   = &Script{"fenced_raise", queueLua + fencedRaiseLua, "177db5dde184a9facbe1020ccce2c4ee27bcaf1c"}
	ScriptFencedExtend  = &Script{"fenced_extend", queueLua + fencedExtendLua, "bad5a57d9bd9907db02fd98245e04230d61ef65f"}
	ScriptFencedRepair  = &Script{"fenced_repair", queueLua + fencedRepairLua, "930551f98541a51f998003107ed11ab8047fc915"}
	ScriptWrite         = &Script{"write", queueLua + rwLua + writeLua, "03730e30d6d067454b8f4a22461c90f9fef5d5ee"}
	ScriptRead          = &Script{"read", queueLua + rwLua + readLua, "fbcae80d9e1c302af3f0eada2f73c77ccfa9107e"}
	ScriptWriteExtend   = &Script{"write_extend", queueLua + rwLua + writeExtendLua, "a95034abb5e95afe5fe569397a4bbaa05681dd0e"}
	ScriptReadExtend    = &Script{"read_extend", queueLua + rwLua + readExtendLua, "2b7f4f04a05339dd1095dfca5412cd02973fbcfc"}
	ScriptWriteRepair   = &Script{"write_repair", queueLua + rwLua + writeRepairLua, "cc350d283535d50fd1b9977eb1885fa2b253708f"}
	ScriptReadRepair    = &Script{"read_repair", queueLua + rwLua + readRepairLua, "40ac2e15d260e998d46ac0981020e462eca98339"}
	ScriptRWRelease     = &Script{"rw_release", queueLua + rwLua + rwReleaseLua, "b45445ef480deb4277f3b5d3704890f76a32d536"}
	ScriptMultiAsk      = &Script{"multi_ask", queueLua + multiLua + multiAskLua, "b6327f6cf5a10b53b2d2def66a59017813dda5e9"}
	ScriptMultiExtend   = &Script{"multi_extend", queueLua + multiLua + multiExtendLua, "d968f87cafe015a9f6a67b74bf54b22e585fb95c"}
	ScriptMultiRepair   = &Script{"multi_repair", queueLua + multiLua + multiRepairLua, "5294995ac75724716a1e2a4e4a8feac021a3944a"}
	ScriptMultiRaise    = &Script{"multi_raise", queueLua + multiLua + multiRaiseLua, "95cbb811097aaac9b8e31e45c7ca92ac8ccea0d6"}
	ScriptMultiRelease  = &Script{"multi_release", queueLua + multiLua + multiReleaseLua, "dcfa0c0592b0edd1157657f7ff8c085695d8e629"}
	ScriptPermit        = &Script{"permit", queueLua + permitsLua + permitLua, "7ae60a28e9faf51cd4cc0a805a36d437405a8ca1"}
	ScriptPermitMove    = &Script{"permit_move", queueLua + permitsLua + permitMoveLua, "4507a5d5410b1217e38bad9d06b1d2f83f9946f1"}
	ScriptPermitExtend  = &Script{"permit_extend", queueLua + permitsLua + permitExtendLua, "2afcde3ddbb4a1ce7dccbd18ce7fbc8947f807b0"}
	ScriptPermitRelease = &Script{"permit_release", queueLua + permitsLua + permitReleaseLua, "efb8bba83dbfc02e34d12380d07ab078f6200e55"}
	ScriptPermitResize  = &Script{"permit_resize", queueLua + permitsLua + permitResizeLua, "38d7d867f9a60d4fbd30ff3b424ecf91cab29793"}
	ScriptLatchArrive   = &Script{"latch_arrive", latchArriveLua, "b8c8cbc03a1334a5c6d7d93a3dc6b4242f291333"}
	ScriptLatchWrite    = &Script{"latch_write", latchWriteLua, "d2e624c120d9f26dec195941c2656341cddf5e89"}
	ScriptProclaim      = &Script{"proclaim", proclaimLua, "57f199d7a43c7dab74ed51ba637f2df9b7d333f2"}
	ScriptLeader        = &Script{"leader", leaderLua, "f5cb39e9abfbd05cabb8b32bef23b7f7d726dfe2"}
	ScriptMarker        = &Script{"marker", markerLua, "6651c7d7c00cee72a2b3325bbcd8696b59c87808"}
)
