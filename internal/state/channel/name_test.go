package channel

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
)

func TestNames(t *testing.T) {
	for _, tc := range []struct{ channel, chat, want string }{
		{"telegram", "987", "telegram_987"},
		{"my-bridge2", "A.b_c-d", "my-bridge2_A.b_c-d"},
		{"x", "../x", "x_..%2Fx"},
		{"x", "a/b", "x_a%2Fb"},
		{"x", "..", "x_.."},
		{"x", "😀", "x_%F0%9F%98%80"},
		{"x", "a b\n\x00%", "x_a%20b%0A%00%25"},
		{"x", "a+b=c:d@e", "x_a%2Bb%3Dc%3Ad%40e"},
		{"-", strings.Repeat("x", 198), "-_" + strings.Repeat("x", 198)},
		{"Telegram", "1", ""}, {"tele_gram", "1", ""}, {"", "1", ""}, {"a/b", "1", ""}, {"..", "1", ""}, {"é", "1", ""}, {"a b", "1", ""},
		{"x", "", ""}, {"x", "\xff", ""}, {"x", strings.Repeat("x", 199), ""}, {"x", strings.Repeat("x", 300), ""}, {"x", strings.Repeat("😀", 20), ""},
	} {
		n, err := NewName(tc.channel, tc.chat)
		if errors.Is(err, ErrName) != (tc.want == "") || err == nil && n.String() != tc.want {
			t.Errorf("%s, %q: %s, %v", tc.channel, tc.chat, n, err)
		}
		if tc.want == "" {
			continue
		}
		if back, err := Parse(n.String()); err != nil || back != n || back.ID() != tc.channel+"_"+tc.chat {
			t.Errorf("%s is read as %s, %v", n, back, err)
		}
	}
}

// TestParse: a name has one form only, so that two files never are one session.
func TestParse(t *testing.T) {
	for _, text := range []string{"", "x", "x_", "_1", "X_1", "x_a/b", "x_a%2fb", "x_%41", "x_%", "x_%4", "x_%zz", "x_a b", "x_😀", "x_%FF", "../x_1", "x_a+b"} {
		if n, err := Parse(text); !errors.Is(err, ErrName) {
			t.Errorf("%q is read as %s, %v", text, n, err)
		}
	}
}

// FuzzNames: a name becomes one file directly in the directory, from which the same name is read again.
func FuzzNames(f *testing.F) {
	for _, chat := range []string{"987", "../x", "a/b", "😀", "%2F", "%", "\x00", strings.Repeat("x", 300), "a_b"} {
		f.Add("telegram", chat)
	}
	f.Fuzz(func(t *testing.T, ch, chat string) {
		n, err := NewName(ch, chat)
		if err != nil {
			if !errors.Is(err, ErrName) {
				t.Error(err)
			}
			return
		}
		home := paths.Dir("/data")
		if path := home.Channel(n.String()); filepath.Dir(path) != home.Channels() || len(filepath.Base(home.ConversationLock(n.Key()))) > 255 {
			t.Errorf("%s is the file %s", n, path)
		}
		if back, err := Parse(n.String()); err != nil || back != n || n.ID() != ch+"_"+chat {
			t.Errorf("%s is read as %s, %v", n, back, err)
		}
	})
}
