// SPDX-License-Identifier: Apache-2.0
package openvta

import chisel3.RawModule
import circt.stage.ChiselStage
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.security.MessageDigest
import openvta.spec._

/** Writes the SystemVerilog of a module for a resolved configuration.
  *
  * `--config FILE --out FOLDER [--top NAME] [--build LIST]`: FOLDER gets `NAME.sv`, `filelist.f` (files in compile order) and `manifest.json`.
  * NAME is a module of this project that takes the parameters alone (VtaTop if not given). LIST, of `trace` and `stalls` with a
  * comma between, adds what only simulation has.
  * Exit status: 0, or 1 with one line on standard error that says what is wrong.
  */
object Elaborate {

  /** Every firtool option of the project. Output is the same for the same input. */
  private val firtoolOptions = Array(
    "--disable-all-randomization",
    "--strip-debug-info",
    "--strip-fir-debug-info",
    "--default-layer-specialization=disable",
    "--lowering-options=disallowLocalVariables,disallowPackedArrays,locationInfoStyle=none",
  )

  private val packages = Seq("shell", "fetch", "load", "compute", "store", "mem", "util")

  private val builds = Set("trace", "stalls")

  private class Usage(message: String) extends RuntimeException(message)

  private case class Arguments(config: Path, out: Path, top: String, build: Set[String])

  private def arguments(args: Array[String]): Arguments = {
    val known = Set("--config", "--out", "--top", "--build")
    if (args.length % 2 != 0) throw new Usage(s"option ${args.last} needs a value")
    val values = args.grouped(2).map(pair => pair(0) -> pair(1)).toMap
    values.keys
      .find(!known(_))
      .foreach(option => throw new Usage(s"unknown option $option; known: ${known.mkString(", ")}"))
    def needed(option: String): Path =
      Paths.get(values.getOrElse(option, throw new Usage(s"option $option is missing")))
    val extras = values.get("--build").toSeq.flatMap(_.split(",")).toSet
    (extras -- builds).foreach(extra =>
      throw new Usage(s"--build $extra: known: ${builds.toSeq.sorted.mkString(", ")}")
    )
    Arguments(needed("--config"), needed("--out"), values.getOrElse("--top", "VtaTop"), extras)
  }

  /** The constructor of a module that takes the parameters alone. */
  private def generator(top: String): VtaParams => RawModule = {
    val found = packages.iterator
      .flatMap(name => scala.util.Try(Class.forName(s"openvta.$name.$top")).toOption)
      .flatMap(_.getConstructors.find(_.getParameterTypes.toSeq == Seq(classOf[VtaParams])))
      .nextOption()
    val constructor = found.getOrElse(throw new Usage(s"--top $top: no module of that name takes the parameters alone"))
    p => {
      try constructor.newInstance(p).asInstanceOf[RawModule]
      catch { case error: java.lang.reflect.InvocationTargetException => throw error.getCause }
    }
  }

  private def sha256(text: String): String =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).map(byte => f"$byte%02x").mkString

  private def run(args: Arguments): Unit = {
    val text            = new String(Files.readAllBytes(args.config), UTF_8)
    val configured      = SpecCheck.read(text)
    val p               = configured.copy(trace = args.build("trace"), stalls = args.build("stalls"))
    val module          = generator(args.top)
    val verilog         = ChiselStage.emitSystemVerilog(module(p), firtoolOpts = firtoolOptions)
    val file            = s"${args.top}.sv"
    val firtool: String = chisel3.BuildInfo.firtoolVersion.getOrElse("unknown").toString
    val manifest        = ujson.Obj(
      "top"             -> args.top,
      "build"           -> ujson.Arr.from(args.build.toSeq.sorted),
      "config"          -> p.name,
      "config_hash"     -> f"${p.hash.toLong}%016x",
      "chisel"          -> chisel3.BuildInfo.version,
      "firtool"         -> firtool,
      "firtool_options" -> ujson.Arr.from(firtoolOptions.toSeq),
      "files"           -> ujson.Arr(ujson.Obj("name" -> file, "sha256" -> sha256(verilog))),
    )
    Files.createDirectories(args.out)
    def write(name: String, content: String): Unit = Files.write(args.out.resolve(name), content.getBytes(UTF_8))
    write(file, verilog)
    write("manifest.json", ujson.write(manifest, indent = 2) + "\n")
    write("filelist.f", s"$file\n")
  }

  private def causes(error: Throwable): Iterator[Throwable] = Iterator.iterate(error)(_.getCause).takeWhile(_ != null)

  def main(args: Array[String]): Unit = {
    def stop(message: String): Nothing = {
      System.err.println(s"elaborate: $message")
      sys.exit(1)
    }
    try run(arguments(args))
    catch {
      case error: Usage                             => stop(error.getMessage)
      case error: java.nio.file.NoSuchFileException => stop(s"${error.getFile}: no such file")
      case error: ujson.ParsingFailedException      => stop(s"the configuration is not JSON: ${error.getMessage}")
      case error: Throwable                         =>
        causes(error).collectFirst { case mismatch: SpecMismatch => mismatch } match {
          case Some(mismatch) => stop(mismatch.getMessage)
          case None           => throw error
        }
    }
  }
}
