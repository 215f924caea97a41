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
var scriptReleases = &Script{"releases", releasesLua, "28032241026d2ad8868604bf42672e3f53f57bac"}

// The scripts. What each does, takes and answers stands in its file.
var (
	ScriptProbe   = &Script{"probe", probeLua, "7e989b538b9efee68ceadfde59297249b420bc6f"}
	ScriptExtend  = &Script{"extend", extendLua, "5869899d7d60519e6799c3ed90f2b072bddf9962"}
	ScriptRelease = &Script{"release", releaseLua, "d85ff150d382d0ef19fe81d39b0b4a67cc2c4c5f"}
	ScriptInspect = &Script{"inspect", inspectLua, "ed59301e112ef7787c9cffd59da5798e87f31f73"}
	ScriptWake    = &Script{"wake", wakeLua, "82d1897e2575812a83eb39d8834d61fb15bdd23d"}
	ScriptMarker  = &Script{"marker", markerLua, "07c158a461094781bfa3e89ae7ba0b9880588e68"}
)
