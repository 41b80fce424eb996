package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// editBytes is the size limit of a file to edit, in bytes.
const editBytes = 16 << 20

func callEdit(ctx context.Context, b *Box, in struct {
	Path string `json:"file_path"`
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
	All  bool   `json:"replace_all"`
}) (string, error) {
	return b.at(in.Path, toEdit, func(s spot) (string, error) {
		f, was, err := openFile(s.g, s.dir, s.name, s.place.Real)
		if err != nil {
			return "", err
		}
		text, err := readWhole(ctx, f)
		_ = f.Close()
		if err != nil {
			return "", err
		}
		changed, lines, err := edited(text, in.Old, in.New, in.All)
		if err != nil {
			return "", err
		}
		if err := s.replace(ctx, []byte(changed), was); err != nil {
			return "", err
		}
		return fmt.Sprintf("Edited %s: %s.", nameOf(s.g, s.place.Real), places(lines)), nil
	})
}

// readWhole returns the whole content of a text file.
func readWhole(ctx context.Context, f io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(bufio.NewReader(patient{ctx, f}), editBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > editBytes:
		return "", fmt.Errorf("it is larger than %d MiB", editBytes>>20)
	case bytes.IndexByte(data, 0) >= 0:
		return "", notText(data)
	case !utf8.Valid(data):
		return "", errors.New("it is not UTF-8 text")
	}
	return string(data), nil
}

// edited replaces old, and returns the lines of the replacements. If every line of the text ends in CR LF, old and new are taken to have
// such ends too, because Read does not show them.
func edited(text, old, replacement string, all bool) (changed string, lines []int, err error) {
	if n := strings.Count(text, "\n"); n > 0 && n == strings.Count(text, "\r\n") {
		old, replacement = crlf(old), crlf(replacement)
	}
	switch old {
	case "":
		return "", nil, errors.New("old_string is empty; use Write for a whole file")
	case replacement:
		return "", nil, errors.New("old_string and new_string are the same")
	}
	n := strings.Count(text, old)
	switch {
	case n == 0 && strings.Contains(text, "\r\n") && strings.Contains(old, "\n"):
		return "", nil, errors.New("old_string was not found; some lines of the file end in \\r\\n and some in \\n: use one " +
			"line at a time")
	case n == 0:
		return "", nil, errors.New("old_string was not found; it must match exactly, including white space")
	case n > 1 && !all:
		return "", nil, fmt.Errorf("old_string was found %d times; include more of the surrounding text, or set replace_all", n)
	}
	return strings.ReplaceAll(text, old, replacement), linesOf(text, old), nil
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// linesOf returns the lines in which old begins.
func linesOf(text, old string) (lines []int) {
	line := 1
	for before, after, found := strings.Cut(text, old); found; before, after, found = strings.Cut(after, old) {
		line += strings.Count(before, "\n")
		lines = append(lines, line)
		line += strings.Count(old, "\n")
	}
	return lines
}

// places says in how many places and lines a text was found.
func places(lines []int) string {
	const most = 10
	if len(lines) == 1 {
		return fmt.Sprintf("1 place, line %d", lines[0])
	}
	var list []string
	for _, line := range lines[:min(most, len(lines))] {
		list = append(list, fmt.Sprint(line))
	}
	if len(lines) > most {
		list = append(list, "…")
	}
	return fmt.Sprintf("%d places, lines %s", len(lines), strings.Join(list, ", "))
}
