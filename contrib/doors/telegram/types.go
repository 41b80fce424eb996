package main

// The objects of the Bot API, with the fields that the door uses.
type (
	user struct {
		ID       int64  `json:"id"`
		Bot      bool   `json:"is_bot"`
		First    string `json:"first_name"`
		Last     string `json:"last_name"`
		Username string `json:"username"`
	}
	chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	}
	entity struct {
		Type     string `json:"type"`
		Offset   int    `json:"offset"` // in UTF-16 units, as Length
		Length   int    `json:"length"`
		URL      string `json:"url,omitempty"`
		Language string `json:"language,omitempty"`
		User     *user  `json:"user,omitempty"`
	}
	media struct {
		ID     string `json:"file_id"`
		Unique string `json:"file_unique_id"`
		Name   string `json:"file_name"`
		Size   int64  `json:"file_size"`
	}
	keyboard struct {
		Rows [][]key `json:"inline_keyboard"`
	}
	key struct {
		Text  string `json:"text"`
		Data  string `json:"callback_data,omitempty"`
		Style string `json:"style,omitempty"`
	}
	message struct {
		ID              int64    `json:"message_id"`
		Thread          int64    `json:"message_thread_id"`
		InTopic         bool     `json:"is_topic_message"`
		From            *user    `json:"from"`
		SenderChat      *chat    `json:"sender_chat"`
		Chat            chat     `json:"chat"`
		Group           string   `json:"media_group_id"`
		Text            string   `json:"text"`
		Entities        []entity `json:"entities"`
		Caption         string   `json:"caption"`
		CaptionEntities []entity `json:"caption_entities"`
		ReplyTo         *message `json:"reply_to_message"`
		Quote           *struct {
			Text string `json:"text"`
		} `json:"quote"`
		Keyboard *keyboard `json:"reply_markup"`

		Document  *media  `json:"document"`
		Photo     []media `json:"photo"` // the largest is the last
		Voice     *media  `json:"voice"`
		Audio     *media  `json:"audio"`
		Video     *media  `json:"video"`
		VideoNote *media  `json:"video_note"`
		Animation *media  `json:"animation"`
		Sticker   *struct {
			Emoji string `json:"emoji"`
		} `json:"sticker"`
		Contact *struct {
			Phone string `json:"phone_number"`
			First string `json:"first_name"`
			Last  string `json:"last_name"`
		} `json:"contact"`
		Location *struct {
			Latitude  float64 `json:"latitude"`
			Longitude float64 `json:"longitude"`
		} `json:"location"`
	}
	callback struct {
		ID      string   `json:"id"`
		From    user     `json:"from"`
		Message *message `json:"message"`
		Data    string   `json:"data"`
	}
	update struct {
		ID       int64     `json:"update_id"`
		Message  *message  `json:"message"`
		Edited   *message  `json:"edited_message"`
		Callback *callback `json:"callback_query"`
	}
)

// The lines of the protocol.
type (
	request struct {
		Type    string    `json:"type"`
		Ref     uint64    `json:"ref"`
		Channel string    `json:"channel"`
		ID      string    `json:"id"`
		Text    *string   `json:"text"`
		ReplyTo string    `json:"reply_to"`
		Silent  bool      `json:"silent"`
		Buttons *[]button `json:"buttons"`
		Files   []file    `json:"files"`
		Emoji   string    `json:"emoji"`
		Remove  bool      `json:"remove"`
		Address string    `json:"address"`
		Most    int64     `json:"most"`
		Path    string    `json:"path"`
	}
	button struct {
		ID       string `json:"id"`
		Label    string `json:"label"`
		Style    string `json:"style,omitempty"`
		Disabled bool   `json:"disabled,omitempty"`
	}
	file struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Path string `json:"path"`
	}
	received struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Size    int64  `json:"size"`
		Address string `json:"address"`
		Voice   bool   `json:"voice,omitempty"`
	}
	quoted struct {
		Text string `json:"text"`
		Own  bool   `json:"own"`
	}
	incoming struct {
		Type      string     `json:"type"`
		ID        string     `json:"id"`
		Channel   string     `json:"channel"`
		User      string     `json:"user,omitempty"`
		Name      string     `json:"name"`
		Direct    bool       `json:"direct"`
		Parent    string     `json:"parent,omitempty"`
		Addressed bool       `json:"addressed"`
		Text      string     `json:"text"`
		ReplyTo   string     `json:"reply_to,omitempty"`
		Quoted    *quoted    `json:"quoted,omitempty"`
		Files     []received `json:"files,omitempty"`
	}
	press struct {
		Type    string   `json:"type"`
		ID      string   `json:"id"`
		Channel string   `json:"channel"`
		Message string   `json:"message"`
		Button  string   `json:"button"`
		User    string   `json:"user"`
		Buttons []button `json:"buttons"`
	}
)
