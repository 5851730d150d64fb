"""Calls with a real `AgentSession`, and scripted models and devices at its ends; for tests.

call = Call(Agent(instructions="Be brief."), model=lambda request: f"You said {request.user_text}")
memory.attach(call.session)                           # the session exists before the call begins
async with call:
    assert await call.says("I'm vegetarian") == "You said I'm vegetarian"
    await call.says("I moved", "to Boston")           # two final transcripts, one turn, one reply
    await call.types("What do I eat?")                # `session.run`
    await call.says("never mind", reply=False)        # a turn that nobody answers
    await call.speech_started()                       # the same by hand
    await call.interim("what do")
    await call.final("what do I eat")
    await call.speech_ended()
    await call.reply()
    call.speaker.hold()                               # from here on the test owns the time
    await call.says("Tell me about Lisbon", reply=False)
    await call.interrupt_at(3, "Stop")                # heard three words; the new reply
assert "vegetarian" in call.model.requests[0].prompt  # what the model saw, call by call
"""

from .call import Call
from .jobs import answering, end_job, fake_job, fake_worker
from .line import Captions, Microphone, Speaker
from .model import ScriptedLLM
from .realtime import ScriptedRealtime
from .room import FakeParticipant, FakeRoom, Sent
from .script import Reply, Request, Script, ToolCall
from .stt import ScriptedSTT
from .vad import ScriptedVAD
from .voice import WORD_SECONDS, ScriptedTTS
from .waiting import DEADLINE, Board, settle

__all__ = [
    "DEADLINE",
    "WORD_SECONDS",
    "Board",
    "Call",
    "Captions",
    "FakeParticipant",
    "FakeRoom",
    "Microphone",
    "Reply",
    "Request",
    "Script",
    "ScriptedLLM",
    "ScriptedRealtime",
    "ScriptedSTT",
    "ScriptedTTS",
    "ScriptedVAD",
    "Sent",
    "Speaker",
    "ToolCall",
    "answering",
    "end_job",
    "fake_job",
    "fake_worker",
    "settle",
]
