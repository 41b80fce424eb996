package cli

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// change makes a request as the bot about one of its messages.
func change(t *testing.T, s *discordapi.Server, method, message, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/api/v10/channels/"+discordapi.DM+"/messages/"+message, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bot "+discordapi.Token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
}

// reopen makes a message one whose answer a killed listener has not noted as shown.
func (w *world) reopen(message string) {
	w.t.Helper()
	var state map[string]any
	if err := json.Unmarshal([]byte(w.read("state/discord.json")), &state); err != nil {
		w.t.Fatal(err)
	}
	state["open"] = map[string]string{message: discordapi.DM}
	data, err := json.Marshal(state)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("state/discord.json", string(data))
}

// TestListenShowsWhatWasNotShown: what a killed listener has shown of an answer is found by what it replies to, not by its words, so
// that neither an equal answer to another message counts, nor a part of it stays that was not noted.
func TestListenShowsWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(t *testing.T, s *discordapi.Server, answer string){
		"shown, not noted": func(*testing.T, *discordapi.Server, string) {},
		"not shown": func(t *testing.T, s *discordapi.Server, answer string) {
			change(t, s, http.MethodDelete, answer, "")
		},
		"begun, not noted": func(t *testing.T, s *discordapi.Server, answer string) {
			change(t, s, http.MethodPatch, answer, `{"content": "-# working…", "allowed_mentions": {"parse": []}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := onDiscord(t, discordapi.Options{})
			b := w.listen(s)
			one := b.Say(discordapi.Post{Text: "one"})
			b.answers(discordapi.DM, 1)
			answer := s.Messages(discordapi.DM)[1].ID
			two := b.Say(discordapi.Post{Text: "two"})
			b.answers(discordapi.DM, 2)
			b.end()
			kill(t, s, answer)
			w.reopen(one)
			b = w.listen(s)
			b.Wait("the state", func() bool { return !strings.Contains(w.read("state/discord.json"), `"open"`) })
			b.end()
			var replies []string
			for _, m := range s.Messages(discordapi.DM) {
				if m.Author.ID == discordapi.Bot {
					replies = append(replies, m.Reference.Message+": "+m.Content)
				}
			}
			slices.Sort(replies)
			if !slices.Equal(replies, []string{one + ": The answer.", two + ": The answer."}) {
				t.Errorf("said %q", replies)
			}
		})
	}
}

// TestListenInsistsInChannels: an answer that a channel did not take is shown there later.
func TestListenInsistsInChannels(t *testing.T) {
	t.Parallel()
	const user, room = "1200000000000000001", "1200000000000000009"
	w, s := onDiscord(t, discordapi.Options{}, "discord.allow", room)
	s.Open(discordapi.Channel{ID: room, Guild: discordapi.Guild})
	b := w.listen(s)
	s.Fail(discordapi.Fault{Method: http.MethodPost, Path: room + "/messages", Times: 2, Status: http.StatusForbidden, Code: 50013})
	asked := b.Say(discordapi.Post{From: user, Channel: room, Text: "<@" + discordapi.Bot + "> hello"})
	b.Wait("the answer", func() bool { return len(b.Said(room)) > 0 })
	b.Wait("the state", func() bool { return !strings.Contains(w.read("state/discord.json"), asked+`":`) })
	b.end()
	if got := s.Said(room); !slices.Equal(got, []string{"The answer."}) {
		t.Errorf("said %q", got)
	}
}

// TestListenAnswerWhilePaused: who answers the question of a run while everything is paused is told when the run continues.
func TestListenAnswerWhilePaused(t *testing.T) {
	t.Parallel()
	w, s := onDiscord(t, discordapi.Options{})
	run := w.question(asks)
	asked := s.Messages(discordapi.DM)
	w.must("pause")
	b := w.listen(s)
	b.Say(discordapi.Post{Text: "green blue", Reply: asked[len(asked)-1].ID})
	b.Wait("what becomes of the answer", func() bool {
		return slices.Contains(b.Said(discordapi.DM), "-# The answer is saved. The run continues after: ollim resume")
	})
	b.end()
	if got := w.record(run)["outcome"]; got != "waiting" {
		t.Errorf("the run is %v", got)
	}
	w.must("resume")
	w.must("answer", "--continue", "--", run)
	if got := w.record(run)["text"]; got != "painted" {
		t.Errorf("text %v", got)
	}
}
