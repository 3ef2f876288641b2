# SPDX-License-Identifier: Apache-2.0
"""The nursery of a program's local runs. It imports the modules that the program has imported, once, and forks
agents, each together with the template of its ranks.

cadre.ray starts it, with a listening socket, and with a pipe that closes when nobody needs it any more.
docs/protocol.md ("Nursery") describes the messages.
"""

import array
import fcntl
import os
import select
import signal
import socket
import sys

from . import _template

_FILES, _INT = 4, array.array("i").itemsize
_NOT_RUNNABLE = 126


class _Agent:
    """An agent, and the socket of the process that stands for it."""

    def __init__(self, stand_in, pid):
        self.stand_in, self.pid, self.is_told = stand_in, pid, False


class _Nursery:
    def __init__(self, listener, life):
        self.listener, self.life = listener, life
        self.line = listener.fileno()  # -1: no further agent is admitted
        self.begun = dict(os.environb)
        self.new = {}  # descriptor of the socket -> the socket of a stand-in that has not sent its request yet
        self.agents = {}  # descriptor of the socket -> _Agent
        self.poll = select.poll()
        self.woken, self.waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self, names):
        """Runs until nobody needs the nursery. Returns in a template, with the socket that asks it for ranks."""
        why = _template.prepare(names)
        if why:
            why = why.removeprefix("worker.preload: ").removesuffix(": take it out of the list")
            print(f"cadre.ray: each worker of this program imports {' and '.join(names)} itself, which takes longer: {why}",
                  file=sys.stderr, flush=True)
            os._exit(1)  # processes that wait in line become agents themselves
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for fd in (self.line, self.life, self.woken):
            self.poll.register(fd, select.POLLIN)
        while self.life is not None or self.agents:
            for fd, _ in self.poll.poll():
                if fd == self.line:
                    self._meet()
                elif fd in self.new:
                    control = self._admit(self.new[fd])
                    if control:
                        return control
                elif fd == self.life:
                    self._retire()
                elif fd == self.woken:
                    os.read(self.woken, 4096)
                elif fd in self.agents:
                    self._pass_on(self.agents[fd])
            self._reap()
        os._exit(0)

    def _retire(self):
        """Forks nothing more. Processes that were forked live until their stand-ins end them."""
        _remove(self.listener.getsockname())
        self.poll.unregister(self.life)
        self.poll.unregister(self.listener)
        os.close(self.life)
        self.listener.close()
        for stand_in in list(self.new.values()):
            self._forget(stand_in).close()  # it becomes an agent itself
        self.line, self.life = -1, None

    def _meet(self):
        """Admits the next process in line. If it has been stopped, it may not send for a long time, and the others go
        on.
        """
        stand_in, _ = self.listener.accept()
        self.new[stand_in.fileno()] = stand_in
        self.poll.register(stand_in, select.POLLIN)

    def _forget(self, stand_in):
        del self.new[stand_in.fileno()]
        self.poll.unregister(stand_in)
        return stand_in

    def _admit(self, stand_in):
        """Forks the agent and template that the stand-in asks for. Returns the control socket in a template,
        otherwise None.
        """
        self._forget(stand_in)
        files = array.array("i")
        try:
            words, carried, _, _ = stand_in.recvmsg(1, socket.CMSG_LEN(_FILES * _INT), socket.MSG_CMSG_CLOEXEC)
            files.frombytes(carried[0][2] if words else b"")
        except OSError:
            pass
        why = _template.why_not("something in the nursery")
        if not files or why:  # the stand-in has ended meanwhile
            _template.say(stand_in, f"N{why}")
            control = None
        else:
            control = self._fork(stand_in, *files)
        for fd in files if not control else ():
            os.close(fd)
        return control

    def _fork(self, stand_in, described, out, err, given):
        with open(described, "rb", closefd=False) as f:
            program, home, number, count, *rest = f.read().split(b"\0")[:-1]
        argv, pairs = rest[:int(count)], (line.partition(b"=") for line in rest[int(count):])
        env = {name: value for name, _, value in pairs}
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as e:
            _template.say(stand_in, f"N{e}")
            return None
        if pid:
            agent = _Agent(stand_in, pid)
            self.agents[stand_in.fileno()] = agent
            self.poll.register(stand_in, select.POLLIN)
            _template.say(stand_in, "P")
            return None
        try:
            _template.follow(parent, signal.SIGTERM)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.chdir(home)
            return self._become(program, argv, env, given, int(number))
        except OSError as e:
            os.write(2, f"cadre-agent: cannot be started by the nursery: {e}\n".encode())
            os._exit(_NOT_RUNNABLE)

    def _become(self, program, argv, env, given, number):
        """Becomes the agent. Returns in its template, which this process forks before that."""
        start, its_start = _pair(number + 1)
        control, its_control = _pair(number + 1)
        agent = os.getpid()
        template = os.fork()
        if template == 0:
            self._leave(given)
            return self._be_template(agent, env, its_start, its_control, (start, control))
        os.close(its_start)
        os.close(its_control)
        if number >= 0:
            os.dup2(given, number)
            os.set_inheritable(number, True)
        preforked = {b"CADRE_PREFORKED": template, b"CADRE_PREFORKED_START": start, b"CADRE_PREFORKED_CONTROL": control}
        os.execve(program, argv, {**env, **{name: str(number).encode() for name, number in preforked.items()}})

    def _leave(self, given):
        """Closes what the nursery has, and its template does not need."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for stand_in in (*self.new.values(), *(agent.stand_in for agent in self.agents.values())):
            stand_in.close()
        self.listener.close()
        for fd in (self.woken, self.waker, given, *((self.life,) if self.life is not None else ())):
            os.close(fd)

    def _be_template(self, agent, env, start, control, of_agent):
        os.setsid()
        for fd in of_agent:
            os.close(fd)
        start = socket.socket(fileno=start)
        if not start.recv(1):  # the agent watches it from now on
            os._exit(1)
        start.close()
        _template.follow(agent, signal.SIGKILL)
        for name in self.begun.keys() - env.keys():
            os.environb.pop(name, None)
        for name, value in env.items():
            if self.begun.get(name) != value:
                os.environb[name] = value
        control = socket.socket(fileno=control)
        control.set_inheritable(False)
        return control

    def _pass_on(self, agent):
        """Passes a signal to the agent. If its stand-in has died, it ends the agent."""
        try:
            number = agent.stand_in.recv(16)
        except OSError:
            number = b""
        if not number:
            self.poll.unregister(agent.stand_in)
        os.kill(agent.pid, int(number or signal.SIGTERM))  # it is a child, and has not been reaped

    def _reap(self):
        for fd, agent in list(self.agents.items()):
            pid, status = os.waitpid(agent.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                _template.say(agent.stand_in, f"X{code}" if code >= 0 else f"K{-code}")
                del self.agents[fd]
                try:
                    self.poll.unregister(fd)
                except KeyError:
                    pass
                agent.stand_in.close()


def _remove(path):
    """Removes the socket and its folder: a program that was killed has left both."""
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # the program has removed them


def _pair(least):
    """Two connected sockets. Their numbers are not used for anything else, and the agent inherits them."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fds = [fcntl.fcntl(end, fcntl.F_DUPFD, least) for end in ends]
    for end in ends:
        end.close()
    return fds


def serve():
    """Returns in a rank."""
    listener, life = map(int, os.environ.pop("CADRE_NURSERY").split())
    os.set_inheritable(listener, False)
    os.set_inheritable(life, False)
    control = _Nursery(socket.socket(fileno=listener), life).run(os.environ["CADRE_PRELOAD"].split())
    _template.tend(control)
