package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// tiedVar makes TestRunTied run a program, tied or not, that lives until it is killed.
const tiedVar = "OLLIM_TIED_TEST"

// TestTied: a tied program ends with its parent in every case; another one continues. The pipe is open as long as one of
// them lives.
func TestTied(t *testing.T) {
	for _, how := range []string{"tied", "free"} {
		t.Run(how, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			parent := exec.Command(os.Args[0], "-test.run", "^TestRunTied$")
			parent.Env = append(os.Environ(), tiedVar+"="+how)
			parent.ExtraFiles = []*os.File{write}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			_ = write.Close()
			child := make([]byte, 1)
			if _, err := io.ReadFull(read, child); err != nil {
				t.Fatal(err)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			if how == "free" { // it says another word as soon as its parent is another
				if _, err := io.ReadFull(read, child); err != nil {
					t.Errorf("the program ended with its parent: %v", err)
				}
				return
			}
			_ = read.SetReadDeadline(time.Now().Add(time.Minute))
			if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 {
				t.Errorf("the program outlived its parent: %q, %v", rest, err)
			}
		})
	}
}

// TestRunTied is the parent of TestTied. Threads of its own end meanwhile, which must not end the program.
func TestRunTied(*testing.T) {
	how := os.Getenv(tiedVar)
	if how == "" {
		return
	}
	go func() {
		for {
			ended := make(chan struct{})
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends
				close(ended)
			}()
			<-ended
			time.Sleep(time.Millisecond)
		}
	}()
	body := `read -r _ _ _ parent _ </proc/$$/stat; now=$parent; sleep 0.2; printf a >&3
while [ "$now" = "$parent" ]; do sleep 0.01; read -r _ _ _ now _ </proc/$$/stat; done; printf b >&3`
	_, _ = Run(context.Background(), Call{
		Argv: []string{"/bin/sh", "-c", body}, Env: []string{path}, Tied: how == "tied", Files: []*os.File{os.NewFile(3, "pipe")},
	})
}
