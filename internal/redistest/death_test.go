package redistest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestMain(m *testing.M) {
	if end := os.Getenv("REDISTEST_VICTIM"); end != "" {
		victims[end]()
		return
	}
	goleak.VerifyTestMain(m)
}

// victims are test processes that end badly. Each first tells the pids of its
// servers.
var victims = map[string]func(){
	"panic in the test": func() {
		all := func(string, string) (bool, error) { return true, nil }
		testing.Main(all, []testing.InternalTest{{Name: "TestPanics", F: func(t *testing.T) {
			tell(redistest.StartN(t, 3))
			panic("on purpose")
		}}}, nil, nil)
	},
	"panic in another goroutine": func() {
		tell(start())
		go func() { panic("on purpose") }()
		select {}
	},
	"exit": func() {
		tell(start())
		os.Exit(3)
	},
	"kill": func() {
		servers := start()
		servers[0].Stop()
		tell(servers)
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	},
}

func TestServers_die_with_their_test_process(t *testing.T) {
	for end := range victims {
		t.Run(end, func(t *testing.T) {
			victim := exec.Command(os.Args[0])
			victim.Env = append(os.Environ(), "REDISTEST_VICTIM="+end, "TMPDIR="+t.TempDir())
			out, err := victim.Output()
			if err == nil {
				t.Fatal("the victim ended well")
			}

			pids := told(string(out))
			if len(pids) != 3 {
				t.Fatalf("the victim told %d pids, want 3: %s", len(pids), out)
			}
			for _, pid := range pids {
				eventually(t, fmt.Sprintf("redis-server %d is gone", pid), func() bool { return !running(pid) })
			}
		})
	}
}

func start() []*redistest.Server {
	servers, err := redistest.RunN(3)
	if err != nil {
		panic(err)
	}
	return servers
}

func tell(servers []*redistest.Server) {
	for _, s := range servers {
		fmt.Println("pid", s.Pid())
	}
}

func told(out string) (pids []int) {
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var pid int
		if n, _ := fmt.Sscanf(lines.Text(), "pid %d", &pid); n == 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
