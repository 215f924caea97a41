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

// Scripts lists every script, in the order in which they are loaded.
var Scripts = []*Script{ScriptProbe, ScriptExtend, ScriptRelease, scriptReleases, ScriptInspect, ScriptWake, ScriptMarker}

//go:embed scripts/line.lua
var lineLua string

//go:embed scripts/probe.lua
var probeLua string

//go:embed scripts/extend.lua
var extendLua string

//go:embed scripts/release.lua
var releaseLua string

//go:embed scripts/releases.lua
var releasesLua string

//go:embed scripts/inspect.lua
var inspectLua string

//go:embed scripts/wake.lua
var wakeLua string

//go:embed scripts/marker.lua
var markerLua string

// scriptReleases is only how the transport sends several releases at once.
var scriptReleases = &Script{"releases", lineLua + releasesLua, "c73f9c3c0444010626d752cbaadabb44c8f24aa4"}

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptProbe   = &Script{"probe", probeLua, "7ce22f271d20d6ce78fc0da9290c3c66e161f794"}
	ScriptExtend  = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease = &Script{"release", lineLua + releaseLua, "676168c50983dd5ab3ddd0b6c82ff32075fded64"}
	ScriptInspect = &Script{"inspect", inspectLua, "ed59301e112ef7787c9cffd59da5798e87f31f73"}
	ScriptWake    = &Script{"wake", lineLua + wakeLua, "91dd4e750eacd5e8649d5fcd0f4ebbd0dbc9c34d"}
	ScriptMarker  = &Script{"marker", markerLua, "07c158a461094781bfa3e89ae7ba0b9880588e68"}
)
