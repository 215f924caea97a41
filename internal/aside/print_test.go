package aside

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPrint_waits_for_no_reader_for_longer_than_the_limit(t *testing.T) {
	read, write := io.Pipe()
	Print(write, "nobody reads\n", time.Millisecond)
	line, err := bufio.NewReader(read).ReadString('\n') // or the goroutine stays
	if line != "nobody reads\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}

	var text strings.Builder
	Print(&text, "somebody does\n", time.Hour)
	if text.String() != "somebody does\n" {
		t.Errorf("printed %q", &text)
	}
}
