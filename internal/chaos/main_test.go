package chaos

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// beAClient in the environment makes the test binary a client's process.
const beAClient = "CHAOS_TEST_BE_A_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(beAClient) != "" {
		if err := ServeClient(os.Stdin, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
