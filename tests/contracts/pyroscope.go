// SPDX-License-Identifier: MIT
// Pyroscope's own interface, as its module of the API generates it: takes what is pushed, and prints
// each profile as a line of JSON, with its series' labels.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"connectrpc.com/connect"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type receiver struct{}

func unpack(raw []byte) (*googlev1.Profile, error) {
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	profile := &googlev1.Profile{}
	return profile, proto.Unmarshal(text, profile)
}

// An error if the definitions do not know a field of the message, or of those in it.
func checkKnown(message proto.Message) error {
	return protorange.Range(message.ProtoReflect(), func(values protopath.Values) error {
		last, is := values.Index(-1).Value.Interface().(protoreflect.Message)
		if is && len(last.GetUnknown()) > 0 {
			return fmt.Errorf("%v has fields that are not known", last.Descriptor().FullName())
		}
		return nil
	})
}

func (receiver) Push(_ context.Context, request *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	if err := checkKnown(request.Msg); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	for _, series := range request.Msg.Series {
		labels := map[string]string{}
		for _, label := range series.Labels {
			labels[label.Name] = label.Value
		}
		for _, sample := range series.Samples {
			profile, err := unpack(sample.RawProfile)
			if err == nil {
				err = checkKnown(profile)
			}
			if err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
			text, err := protojson.Marshal(profile)
			if err != nil {
				return nil, err
			}
			json.NewEncoder(os.Stdout).Encode(map[string]any{
				"labels": labels, "id": sample.ID, "profile": json.RawMessage(text)})
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func main() {
	path, handler := pushv1connect.NewPusherServiceHandler(receiver{})
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, listener.Addr())
	panic(http.Serve(listener, mux))
}
